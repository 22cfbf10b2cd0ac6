// The graph of a circuit: buttons for heads and layers, curves for edges, and the edge that is nearest to the pointer.
import type { App } from "../app";
import { strongestEdges } from "../circuit";
import { h, s, set } from "../dom";
import type { Circuited } from "../given";
import {
  graphOf,
  nearestLine,
  nodeHeight,
  nodeTo,
  pathOf,
  widthOf,
  type CircuitGraph,
  type CircuitLine,
  type CircuitNode,
} from "../graph";
import { stacksOf } from "../node";
import type { Run } from "../page";

/** By what an edge is the input of: the colour. */
export const inputKinds = { queries: "q", keys: "k", values: "v", feed_forward: "other", states: "other" } as const;

const narrowest = 24; // pixels of a column
const reach = 14; // pixels from an edge

export class Graph {
  private readonly svg = s("svg", { "aria-hidden": "true", preserveAspectRatio: "none" });
  private readonly names = h("div", { class: "rows", "aria-hidden": "true" });
  private readonly space = h(
    "div",
    {
      class: "space",
      pointermove: (event: PointerEvent) => this.tell(this.under(event)),
      pointerleave: () => this.tell(null),
      click: (event: MouseEvent) => this.press(event),
    },
    this.svg,
  );
  private readonly net = h(
    "div",
    { class: "bands net", role: "group", "aria-label": "Heads and layers of the circuit" },
    this.names,
    this.space,
  );
  readonly element = h(
    "section",
    { class: "parts", "aria-label": "The circuit" },
    h(
      "p",
      { class: "about" },
      "Later layers stand higher, heads are numbers, ff is a feed-forward layer. Edges to ",
      h("span", { class: "q" }, "queries"),
      " are blue, to ",
      h("span", { class: "k" }, "keys"),
      " red, to ",
      h("span", { class: "v" }, "values"),
      " green, others grey; as thick as their scores, and dashed against the answer.",
    ),
    this.net,
  );
  private graph: CircuitGraph = { rows: [], lines: [], columns: 1, height: 0 };
  private buttons = new Map<string, HTMLButtonElement>();
  private paths = new Map<CircuitLine, SVGPathElement>();

  /** say: of an edge by its number, of a node by its name, or of what is chosen. */
  constructor(
    private readonly app: App,
    private readonly say: (of: number | string | null) => void,
  ) {}

  build(run: Run, its: Circuited): void {
    this.graph = graphOf(run, its);
    const { rows, columns, height } = this.graph;
    this.svg.setAttribute("viewBox", `0 0 ${columns} ${height}`);
    this.net.classList.toggle("several", stacksOf(run).length > 1);
    this.space.style.height = `${height}px`;
    this.space.style.minWidth = `${columns * narrowest}px`;
    this.names.replaceChildren(
      ...rows.map(({ label, y }) => {
        const name = h("span", {}, label);
        name.style.top = `${y}px`;
        return name;
      }),
    );
    this.buttons = new Map(rows.flatMap(({ nodes }) => nodes.map((node) => [node.name, this.node(node)])));
    this.space.replaceChildren(this.svg, ...this.buttons.values());
  }

  columns(): number {
    return this.graph.columns;
  }

  private node(node: CircuitNode): HTMLButtonElement {
    const button = h(
      "button",
      {
        type: "button",
        class: node.isHead ? "node" : "node layer-node",
        "data-node": node.name,
        "data-head": node.isHead && node.name,
        "aria-label": node.title.includes(node.label) ? node.title : `${node.title}: ${node.label}`,
        tabindex: -1,
        focus: () => this.tell(node.name),
        blur: () => this.tell(null),
        keydown: (event: KeyboardEvent) => {
          const to = nodeTo(this.graph, node.name, event.key);
          if (!to) return;
          event.preventDefault();
          if (to.isHead) this.app.choose({ head: to.name });
          this.buttons.get(to.name)?.focus();
        },
      },
      node.label,
    );
    button.style.left = `${(100 * node.x) / this.graph.columns}%`;
    button.style.top = `${node.y}px`;
    button.style.height = `${nodeHeight}px`;
    return button;
  }

  /** The first edges, the strongest on top, those of the chosen head deeper. */
  draw(its: Circuited, first: number, head: string): void {
    const most = Math.abs(strongestEdges(its)[0]?.score ?? 0);
    const lines = this.graph.lines.filter((line) => line.number < first).reverse();
    this.paths = new Map(
      lines.map((line) => {
        const own = line.from.name === head || line.to.name === head;
        const path = s("path", {
          d: pathOf(line),
          class: `edge ${inputKinds[line.edge.input]}${own ? " own" : ""}`,
          fill: "none",
          "vector-effect": "non-scaling-stroke",
          "stroke-width": widthOf(line.edge, most),
          "stroke-dasharray": (line.edge.score ?? 0) < 0 && "5 4",
        });
        return [line, path];
      }),
    );
    this.svg.replaceChildren(...this.paths.values());
    const joined = new Set(lines.flatMap(({ from, to }) => [from.name, to.name]));
    const inHere = this.buttons.has(head) ? head : this.graph.rows[0]?.nodes[0]?.name;
    for (const [name, button] of this.buttons) {
      button.classList.toggle("dim", !joined.has(name));
      if (button.dataset.head) set(button, "aria-pressed", name === head);
      button.tabIndex = name === inHere ? 0 : -1;
    }
  }

  /** Edges stand out: one by its number, or those of a node. */
  light(of: number | string | null): void {
    let some = false;
    for (const [line, path] of this.paths) {
      const lit = of !== null && (line.number === of || line.from.name === of || line.to.name === of);
      path.classList.toggle("lit", lit);
      some ||= lit;
    }
    this.svg.classList.toggle("some", some);
  }

  /** Many layers do not fit: those around the head are what is seen first, or else the answer. */
  reveal(head: string): void {
    const button = this.buttons.get(head);
    const { clientWidth, clientHeight, scrollWidth } = this.net;
    this.net.scrollTop = button ? button.offsetTop - clientHeight / 2 : 0;
    this.net.scrollLeft = button ? button.offsetLeft - clientWidth / 2 : (scrollWidth - clientWidth) / 2;
  }

  private tell(of: number | string | null): void {
    this.say(of);
  }

  private under(event: MouseEvent): number | string | null {
    const button = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-node]") : null;
    if (button?.dataset.node) return button.dataset.node;
    const rect = this.space.getBoundingClientRect();
    const column = rect.width / this.graph.columns;
    const point = { x: (event.clientX - rect.left) / column, y: event.clientY - rect.top };
    return nearestLine([...this.paths.keys()], point, column, reach)?.number ?? null;
  }

  private press(event: MouseEvent): void {
    const of = this.under(event);
    if (typeof of === "number") this.app.choose({ cell: `edge:${of}` });
    else if (of !== null && this.buttons.get(of)?.dataset.head) this.app.choose({ head: of, key: null, cell: "" });
    else if (of === null) this.app.choose({ cell: "" });
    this.tell(of);
  }
}
