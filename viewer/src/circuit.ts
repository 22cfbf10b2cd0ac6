// A circuit in words and figures.
import type { CircuitEdge, Circuited, Interval } from "./given";
import { figure, percent, thousands } from "./names";
import { titleOfNode } from "./node";
import type { Run } from "./page";
import type { Figure } from "./reader";

/** How strong an edge is, for or against the answer. */
export const sizeOf = ({ score }: CircuitEdge): number => Math.abs(score ?? 0);

const effects = new WeakMap<Circuited, CircuitEdge[]>();

/** The edges of the circuit, the strongest first, with the effects that were measured. */
export function strongestEdges(its: Circuited): CircuitEdge[] {
  const before = effects.get(its);
  if (before) return before;
  const measured = new Map(its.exact.map((edge) => [`${edge.from} ${edge.to}`, edge.effect]));
  const made = its.edges
    .map((edge) => ({ ...edge, effect: edge.effect ?? measured.get(`${edge.from} ${edge.to}`) ?? null }))
    .sort((a, b) => sizeOf(b) - sizeOf(a));
  effects.set(its, made);
  return made;
}

const readable = 100; // of more edges no picture can be read at first sight

/** How many of the edges are shown, the strongest; chosen: 0 where nobody chose. */
export const shownEdges = (its: Circuited, chosen: number): number => Math.min(chosen || readable, its.edges.length);

/** "values of Decoder 23, heads 3, 4 and 5" */
function titleOfTarget(run: Run, { input, readers, to }: CircuitEdge): string {
  const [first = to, ...more] = readers;
  if (input === "states") return "the last states";
  if (input === "feed_forward") return titleOfNode(run, first);
  const numbers = [first, ...more].map((name) => name.split(".").pop());
  const last = numbers.pop();
  const title = titleOfNode(run, first);
  const all = numbers.length === 0 ? title : title.replace(/head \d+$/, `heads ${numbers.join(", ")} and ${last}`);
  return `${input} of ${all}`;
}

/** "0.823 ± 0.041" */
export function intervalInWords({ mean, half }: Interval): string {
  return `${figure(mean ?? Number.NaN)}${half === null ? "" : ` ± ${figure(half)}`}`;
}

/** "Decoder 3, head 5 → values of Decoder 4, head 1: score 0.123, effect 0.110 ± 0.020" */
export function edgeInWords(run: Run, edge: CircuitEdge): string {
  const score = edge.score ?? Number.NaN;
  const effect = edge.effect ? `, effect ${intervalInWords(edge.effect)}` : "";
  const against = score < 0 ? "; against the answer" : "";
  return `${edgeTitles(run, edge).join(" → ")}: score ${figure(score)}${effect}${against}`;
}

/** Its two ends. */
export const edgeTitles = (run: Run, edge: CircuitEdge): [string, string] => [
  titleOfNode(run, edge.from),
  titleOfTarget(run, edge),
];

const edgesOf = (count: number): string => `${count} ${count === 1 ? "edge" : "edges"}`;

/** What leads into a node and what it leads to, of the first edges. */
export function nodeInWords(run: Run, its: Circuited, name: string, first: number): string {
  const edges = strongestEdges(its).slice(0, first);
  const into = edges.filter((edge) => edge.readers.includes(name));
  const out = edges.filter((edge) => edge.from === name);
  const title = titleOfNode(run, name);
  if (into.length + out.length === 0)
    return `${title} has none of the edges that are shown here. Choose an edge, or a head of the graph.`;
  const strongest = [...into, ...out].sort((a, b) => sizeOf(b) - sizeOf(a))[0] as CircuitEdge;
  const counts = [into.length > 0 && `${edgesOf(into.length)} in`, out.length > 0 && `${out.length} out`];
  return `${title}: ${counts.filter(Boolean).join(", ")}. The strongest: ${edgeInWords(run, strongest)}.`;
}

/** "24 of 70,651 edges keep 82 % of the decision" */
export function circuitInWords(its: Circuited | null): string {
  if (!its) return "";
  const { edges_of_circuit, edges_of_model, faithfulness } = its;
  const keeps = percent(faithfulness.mean ?? Number.NaN);
  return `${thousands(edges_of_circuit)} of ${thousands(edges_of_model)} edges keep ${keeps} of the decision`;
}

export interface CircuitFigure {
  title: string;
  value: string;
  about: string;
}

/** Shares of the decision in three decimals. */
const fixed = (share: Figure): string => (share ?? Number.NaN).toFixed(3).replace("-", "−");
const shareInWords = ({ mean, half }: Interval): string => `${fixed(mean)}${half === null ? "" : ` ± ${fixed(half)}`}`;

const scores = { log_probability: "log p", logit: "logit", cosine: "cosine" };

export function figuresOfCircuit(its: Circuited): CircuitFigure[] {
  const { random } = its;
  const pairs = (count: number) => `${count} ${count === 1 ? "pair" : "pairs"}`;
  const lines: CircuitFigure[] = [
    {
      title: "Faithfulness",
      value: shareInWords(its.faithfulness),
      about: `kept by the circuit alone, on ${pairs(its.proved_pairs)}; ` + `asked for were ${fixed(its.share)}`,
    },
    {
      title: "Completeness",
      value: shareInWords(its.completeness),
      about: "lost by the model without the circuit",
    },
  ];
  if (its.faithfulness_elsewhere)
    lines.splice(1, 0, {
      title: "Elsewhere",
      value: shareInWords(its.faithfulness_elsewhere),
      about: `kept on ${pairs(its.pairs_elsewhere)} on which it was not looked for`,
    });
  if (random.count > 0)
    lines.push({
      title: "Random circuits",
      value: fixed(random.mean),
      about:
        `the mean of ${thousands(random.count)} with as many edges, on ${pairs(random.pairs)}; the best keeps ` +
        `${fixed(random.most)}, and ${random.as_faithful} keep as much as the circuit`,
    });
  lines.push({
    title: "Decision",
    value: `${figure(its.clean ?? Number.NaN)} and ${figure(its.corrupt ?? Number.NaN)}`,
    about: `${scores[its.measure]} of the answer less that of the wrong one, after clean and after corrupt texts`,
  });
  return lines;
}

/** The edges as text with tabs, the figures in full. */
export function tabbedEdges(edges: CircuitEdge[]): string {
  const rows = edges.map(({ from, to, input, score, effect }) =>
    [from, to, score, effect?.mean, effect?.half, input].map((value) => value ?? "").join("\t"),
  );
  return [["from", "to", "score", "effect", "half of its interval", "input"].join("\t"), ...rows].join("\n");
}
