// The order of heads that a finder wants, and which are dimmed.
import type { Column } from "./evidence";
import type { Attention } from "./page";

export interface Found {
  attention: number;
  head: number;
  name: string;
  value: number | null;
  dim: boolean;
}

export interface Band {
  kind: Attention["kind"];
  columns: number;
  heads: Found[];
}

const kinds: Attention["kind"][] = ["encoder", "decoder", "cross"];

/**
 * Heads in bands. Without a column in the order of the model, layer under layer; with one the best first, and those
 * dimmed that are on the other side of the middle between the best and the last.
 */
export function bandsOf(
  attentions: Attention[],
  column: Column | null,
  letters: string,
  words: (head: string) => string,
): Band[] {
  const wanted = letters.trim().toLowerCase();
  return kinds.flatMap((kind) => {
    const heads = attentions.flatMap((of, attention) =>
      of.kind !== kind
        ? []
        : Array.from({ length: of.heads }, (_, head): Found => {
            const name = `${of.name}.${head}`;
            const named = wanted === "" || `${name} ${words(name)}`.toLowerCase().includes(wanted);
            return { attention, head, name, value: column?.values.get(name) ?? null, dim: !named };
          }),
    );
    if (heads.length === 0) return [];
    if (column) {
      const values = heads.map((one) => one.value).filter((value): value is number => value !== null);
      const [low, high] = [Math.min(...values), Math.max(...values)];
      const middle = (low + high) / 2;
      for (const one of heads)
        one.dim ||= one.value === null || (high > low && (column.largest ? one.value < middle : one.value > middle));
      const sign = column.largest ? 1 : -1;
      heads.sort(
        (a, b) => (a.value === null ? 1 : 0) - (b.value === null ? 1 : 0) || sign * ((b.value ?? 0) - (a.value ?? 0)),
      );
    }
    const columns = Math.max(...attentions.filter((of) => of.kind === kind).map((of) => of.heads));
    return [{ kind, columns, heads }];
  });
}
