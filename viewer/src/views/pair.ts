// A pair of query and key: q·k dimension by dimension, its score, the softmax, and the share.
import { headOf, type App, type Chosen } from "../app";
import { max } from "d3-array";
import { signedBars } from "../draw/bars";
import { h, s } from "../dom";
import { figure, percent, shown } from "../names";
import type { Choice } from "../state";
import { softlyCapped, type Scores } from "../weights";

const width = 420;
const height = 54;

export class Pair {
  readonly element = h("section", { class: "pair-of", "aria-label": "A pair" });

  constructor(private readonly app: App) {}

  update(now: Choice): void {
    const head = headOf(this.app, now);
    if (!head) return;
    const weights = this.app.weights.of(head.place);
    const row = weights.a.subarray(now.query * weights.keys, (now.query + 1) * weights.keys);
    const key = now.key ?? row.indexOf(row.reduce((a, b) => Math.max(a, b), 0));
    const scores = this.app.weights.scores(head.place, now.query);
    const title = h(
      "h2",
      {},
      "From scores to weights: ",
      this.token(head, "queries", now.query),
      " reads ",
      this.token(head, "keys", key),
      ` ${percent(row[key] as number)}`,
    );
    if (!scores) {
      this.element.replaceChildren(
        title,
        h("p", { class: "quiet" }, "The page keeps the weights of this head and not its queries and keys."),
        this.table(head, now, key, row, null),
      );
      return;
    }
    this.element.replaceChildren(
      title,
      this.bars(head, now.query, key),
      this.sum(head, key, row, scores),
      this.table(head, now, key, row, scores),
    );
  }

  private token(head: Chosen, side: "queries" | "keys", i: number): HTMLElement {
    return h("bdi", { class: side === "queries" ? "q" : "k" }, shown(head[side].tokens[i]?.label ?? "", 24));
  }

  /** Three rows of bars: q, k and their product. */
  private bars(head: Chosen, query: number, key: number): SVGSVGElement {
    const d = head.attention.d_key;
    const q = (this.app.weights.queryRows(head.place) as Float32Array).subarray(query * d, (query + 1) * d);
    const k = (this.app.weights.keyRows(head.place) as Float32Array).subarray(key * d, (key + 1) * d);
    const product = q.map((value, i) => value * (k[i] as number));
    const sizes = [q, k, product].map((values) => max(values, Math.abs) ?? 0);
    const both = Math.max(sizes[0] as number, sizes[1] as number);
    const svg = s("svg", {
      class: "products",
      viewBox: `0 0 ${width + 44} ${3 * height + 24}`,
      role: "img",
      "aria-label": `Query, key and their product in ${d} dimensions`,
    });
    (
      [
        ["q", q, both, "q"],
        ["k", k, both, "k"],
        ["q·k", product, sizes[2] as number, "qk"],
      ] as const
    ).forEach(([label, values, most, kind], n) => {
      const y = n * (height + 10);
      const bars = signedBars(values, most, width, height, kind);
      bars.setAttribute("transform", `translate(44 ${y})`);
      svg.append(s("text", { x: 34, y: y + height / 2 + 4, class: kind, "text-anchor": "end" }, label), bars);
    });
    return svg;
  }

  private sum(head: Chosen, key: number, row: Float32Array, scores: Scores): HTMLElement {
    const products = head.maps.products as NonNullable<Chosen["maps"]["products"]>;
    const score = scores.score[key] as number;
    if (score === -Infinity)
      return h("p", { class: "chain" }, "The query may not see this key: its score is −∞ and its weight 0.");
    const total = scores.score.reduce((sum, one) => sum + Math.exp(one - score), 0);
    const part = (label: string, value: string) =>
      h("span", { class: "part" }, h("b", {}, value), h("small", {}, label));
    return h(
      "div",
      { class: "chain" },
      part("q·k, the sum of the products", figure(scores.product[key] as number)),
      " × ",
      part("scale", figure(products.scale)),
      products.soft_cap !== null && " → ",
      products.soft_cap !== null &&
        part(
          `c · tanh(x / c), the soft cap c = ${figure(products.soft_cap)}`,
          figure(softlyCapped((scores.product[key] as number) * products.scale, products.soft_cap)),
        ),
      scores.bias && " + ",
      scores.bias && part("bias of the distance", figure(scores.bias[key] as number)),
      " = ",
      part("score s", figure(score)),
      " → ",
      part("eˢ / Σ eˢ, the softmax", percent(1 / total)),
      Math.abs(1 / total - (row[key] as number)) > 0.006 && part("as drawn", percent(row[key] as number)),
    );
  }

  private table(head: Chosen, now: Choice, key: number, row: Float32Array, scores: Scores | null): HTMLElement {
    const best = [...row.keys()]
      .sort((a, b) => (row[b] as number) - (row[a] as number))
      .filter((j) => (row[j] as number) > 0 && scores?.score[j] !== -Infinity)
      .slice(0, 8);
    if (!best.includes(key)) best.push(key);
    const lines = best.map((j) => {
      const share = h("td", { class: "bar" }, percent(row[j] as number));
      share.style.setProperty("--part", `${Math.round(100 * (row[j] as number))}%`);
      return h(
        "tr",
        { "aria-selected": String(j === key) },
        h(
          "th",
          { scope: "row" },
          h(
            "button",
            { type: "button", "data-key": j, click: () => this.app.choose({ key: j }) },
            this.token(head, "keys", j),
          ),
        ),
        scores && h("td", {}, figure(scores.product[j] as number)),
        scores?.bias && h("td", {}, figure(scores.bias[j] as number)),
        scores && h("td", {}, figure(scores.score[j] as number)),
        share,
      );
    });
    const heads = [
      "key",
      ...(scores ? ["q·k"] : []),
      ...(scores?.bias ? ["bias"] : []),
      ...(scores ? ["score"] : []),
      "weight",
    ];
    return h(
      "table",
      { class: "figures keys" },
      h("caption", {}, "What ", this.token(head, "queries", now.query), " reads most"),
      h("thead", {}, h("tr", {}, ...heads.map((one) => h("th", { scope: "col" }, one)))),
      h("tbody", {}, ...lines),
    );
  }
}
