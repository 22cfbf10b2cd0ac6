// Running text whose tokens are buttons, with arcs from the one in focus to what the head reads there.
import { headOf, shownOf, type App, type Chosen, type Shown, type Side } from "../app";
import { arcsOf, type Box } from "../draw/arcs";
import { css, grey, hueOf, inkOn, ramp, shade, type Rgb } from "../draw/colours";
import { arrowTo, h, s, set } from "../dom";
import { groupOf, type Group } from "../merge";
import { figure, percent, shown, visible } from "../names";
import type { Text, Token, Tokens } from "../page";
import type { Choice } from "../state";

interface Line {
  side: Side;
  tokens: Tokens;
  element: HTMLElement;
  buttons: HTMLButtonElement[];
}

const labels = { source: "The text", target: "Its translation" };

export class RunningText {
  readonly element = h("div", { class: "running" });
  private readonly svg = s("svg", { class: "arcs", "aria-hidden": "true" });
  private readonly says = h("p", { class: "reads", "aria-live": "polite" });
  private lines: Line[] = [];
  private text: Text | null = null;
  private cross = false;
  private pointed: number | null = null;
  private fitted = 0;
  private measured = new Map<Line, { groups: Group[]; boxes: Box[] }>();

  constructor(private readonly app: App) {
    new ResizeObserver(() => {
      this.measured.clear();
      this.fit();
      this.draw(this.app.now());
    }).observe(this.element);
  }

  update(now: Choice): void {
    const head = headOf(this.app, now);
    if (!head) return;
    if (this.text !== head.text || this.cross !== (head.attention.kind === "cross"))
      this.build(head.text, head.attention.kind === "cross");
    this.pointed = null;
    if (this.element.dataset.kind !== head.attention.kind) this.measured.clear();
    set(this.element, "data-kind", head.attention.kind);
    this.draw(now);
  }

  /** In cross-attention a row is shown by the word that it predicts. */
  private build(text: Text, cross: boolean): void {
    [this.text, this.cross] = [text, cross];
    const sides: Side[] = text.target ? ["source", "target"] : ["source"];
    this.lines = sides.map((side) =>
      this.line(side, ((side === "target" && cross && text.predicted) || text[side]) as Tokens),
    );
    this.element.replaceChildren(...this.lines.map((line) => line.element), this.svg, this.says);
    this.element.classList.toggle("pair", sides.length > 1);
    this.fitted = 0;
    this.fit();
  }

  /** The largest letters with which each text is one line; else those of running text. */
  private fit(): void {
    const width = this.element.clientWidth;
    if (width === 0 || width === this.fitted) return;
    this.fitted = width;
    this.measured.clear();
    const most = Math.max(...this.lines.map((line) => line.buttons.length));
    for (const size of most > 60 ? [] : ["large", "middle", "narrow"]) {
      set(this.element, "data-size", size);
      if (
        this.lines.every((line) => {
          const [a, b] = [line.buttons[0], line.buttons[line.buttons.length - 1]].map((one) =>
            one?.getBoundingClientRect(),
          );
          return !a || !b || Math.abs(a.top + a.height / 2 - b.top - b.height / 2) < a.height;
        })
      )
        return;
    }
    set(this.element, "data-size", most <= 60 ? "lines" : "small");
  }

  private line(side: Side, tokens: Tokens): Line {
    const element = h("p", { class: `line ${side}`, role: "group", "aria-label": labels[side], dir: "auto" });
    const characters = [...tokens.text];
    let end = 0;
    const buttons = tokens.tokens.map((token, i) => {
      const inText = token.end > token.begin && token.begin >= end;
      if (inText) {
        const gap = characters.slice(end, token.begin).join("");
        if (gap !== "") element.append(gap.trim() === "" ? " " : ` ${visible(gap)} `);
        end = token.end;
      } else element.append(" ");
      const slice = inText ? characters.slice(token.begin, token.end).join("") : token.label;
      const button = this.button(side, i, token, slice);
      element.append(button);
      return button;
    });
    return { side, tokens, element, buttons };
  }

  private button(side: Side, i: number, token: Token, slice: string): HTMLButtonElement {
    const text = slice.startsWith(" ") && slice.trim() !== "" ? slice.trimStart() : slice;
    const at = `${side}:${i}`;
    return h(
      "button",
      {
        type: "button",
        "data-token": at,
        class: token.special ? "token special" : "token",
        tabindex: -1,
        click: (event: MouseEvent) => this.pick(side, i, event.shiftKey),
        pointerenter: (event: PointerEvent) => event.pointerType !== "touch" && this.point(side, i),
        pointerleave: () => this.point(side, null),
        keydown: (event: KeyboardEvent) => this.key(event, side, i),
      },
      text.length > 2 && slice !== text ? " " : null,
      h("bdi", {}, shown(text, 200)),
    );
  }

  private pick(side: Side, i: number, asKey: boolean): void {
    const now = this.app.now();
    const head = headOf(this.app, now);
    if (!head) return;
    if (side === head.querySide && !asKey) this.app.choose({ query: i, key: null });
    else if (side === head.keySide) this.app.choose({ key: now.key === i ? null : i });
  }

  private point(side: Side, i: number | null): void {
    const head = headOf(this.app, this.app.now());
    this.pointed = head && side === head.querySide ? i : null;
    this.draw(this.app.now());
  }

  private key(event: KeyboardEvent, side: Side, i: number): void {
    const line = this.lines.find((one) => one.side === side) as Line;
    const other = this.lines.find((one) => one.side !== side);
    if ((event.key === "ArrowDown" || event.key === "ArrowUp") && other) {
      event.preventDefault();
      other.buttons[Math.min(i, other.buttons.length - 1)]?.focus();
      return;
    }
    const to = arrowTo(event.key, i, line.buttons.length, 1);
    if (to === null) return;
    event.preventDefault();
    line.buttons[to]?.focus();
    const head = headOf(this.app, this.app.now());
    if (head?.querySide === side) this.app.choose(event.shiftKey ? { key: to } : { query: to, key: null });
  }

  /** Where groups of tokens lie; measured once for each layout, since pointing must fit into a frame. */
  private boxes(line: Line, groups: Group[]): Box[] {
    const before = this.measured.get(line);
    if (before?.groups === groups) return before.boxes;
    const boxes = this.measure(line, groups);
    this.measured.set(line, { groups, boxes });
    return boxes;
  }

  private measure(line: Line, groups: Group[]): Box[] {
    const origin = this.element.getBoundingClientRect();
    return groups.map((group) => {
      const a = (line.buttons[group.first] as HTMLElement).getBoundingClientRect();
      const b = (line.buttons[group.last] as HTMLElement).getBoundingClientRect();
      const sameLine = Math.abs(a.top - b.top) < 4;
      const left = sameLine ? Math.min(a.left, b.left) : a.left;
      const right = sameLine ? Math.max(a.right, b.right) : a.right;
      return { left: left - origin.left, top: a.top - origin.top, width: right - left, height: a.height };
    });
  }

  private draw(now: Choice): void {
    const head = headOf(this.app, now);
    if (!head || this.lines.length === 0 || !this.element.isConnected) return;
    this.fit();
    const view = shownOf(this.app, now, head);
    const query = this.pointed ?? now.query;
    const row = groupOf(view.queries, query);
    const weights = view.map.values.subarray(row * view.map.columns, (row + 1) * view.map.columns);
    set(this.element, "data-weights", JSON.stringify({ head: now.head, query, weights: [...weights] }));
    this.dress(now, head, view, row, weights);
    this.arcs(head, view, row, weights);
    this.say(head, view, row, weights, now.lengths);
  }

  private dress(now: Choice, head: Chosen, view: Shown, row: number, weights: Float32Array): void {
    const theme = this.app.theme();
    const colours = Array.from({ length: 33 }, (_, t): Rgb => ramp(t / 32, hueOf(head.place.head), theme));
    const chosen = view.queries[row] as Group;
    for (const line of this.lines) {
      const groupAt = new Int32Array(line.buttons.length).fill(-1);
      if (line.side === head.keySide) view.keys.forEach((group, g) => groupAt.fill(g, group.first, group.last + 1));
      line.element.classList.toggle("aside", line.side !== head.keySide && line.side !== head.querySide);
      line.buttons.forEach((button, i) => {
        const on = line.side === head.querySide && i >= chosen.first && i <= chosen.last;
        const weight = (groupAt[i] as number) < 0 ? 0 : (weights[groupAt[i] as number] as number);
        const t = shade(Math.abs(weight), view.full) ** 1.5;
        const colour = weight < 0 ? grey(t, theme) : (colours[Math.round(32 * t)] as Rgb);
        const paint = Math.abs(weight) > 0.02 * view.full;
        const background = paint ? css(colour) : "";
        if (button.style.backgroundColor !== background) {
          button.style.backgroundColor = background;
          button.style.color = paint ? inkOn(colour) : "";
        }
        set(button, "aria-pressed", on);
        button.classList.toggle("paired", line.side === head.keySide && now.key === i);
        button.tabIndex = (line.side === head.querySide ? i === now.query : i === 0) ? 0 : -1;
      });
    }
  }

  private arcs(head: Chosen, view: Shown, row: number, weights: Float32Array): void {
    const queries = this.boxes(this.lines.find((one) => one.side === head.querySide) as Line, view.queries);
    const keys = this.boxes(this.lines.find((one) => one.side === head.keySide) as Line, view.keys);
    const first = keys[0];
    const middle = (box: Box) => box.top + box.height / 2;
    const oneLine = first && keys.every((box) => Math.abs(middle(box) - middle(first)) < box.height / 2);
    const lead = Number.parseFloat(getComputedStyle(this.lines[0]?.element as HTMLElement).lineHeight);
    const above = head.keySide === "target" ? lead - (first?.height ?? 0) + 40 : (first?.top ?? 0) - 8;
    const room = oneLine ? Math.max(24, above) : Math.max(14, lead - (first?.height ?? 0) - 6);
    const colour = css(ramp(this.app.theme() === "light" ? 0.72 : 0.8, hueOf(head.place.head), this.app.theme()));
    const paths = this.faint(view, queries, keys, row, room, colour);
    for (const arc of arcsOf(queries[row] as Box, keys, weights, view.full, room)) {
      paths.push(
        s("path", {
          d: arc.d,
          stroke: colour,
          "stroke-width": arc.width,
          "stroke-opacity": arc.opacity,
          fill: "none",
          "stroke-linecap": "round",
          "stroke-dasharray": arc.below && "3 6",
        }),
      );
    }
    this.svg.replaceChildren(...paths);
  }

  /** Of short texts what the other words read most, faintly: the head's habit is seen at once. */
  private faint(view: Shown, queries: Box[], keys: Box[], row: number, room: number, colour: string): SVGPathElement[] {
    if (queries.length > 48) return [];
    return queries.flatMap((from, r) => {
      if (r === row) return [];
      const weights = view.map.values.subarray(r * keys.length, (r + 1) * keys.length);
      return arcsOf(from, keys, weights, view.full, room, 2)
        .filter((arc) => (weights[arc.to] as number) > 0.25 * view.full)
        .map((arc) => s("path", { d: arc.d, stroke: colour, "stroke-width": 1, "stroke-opacity": 0.22, fill: "none" }));
    });
  }

  private say(head: Chosen, view: Shown, row: number, weights: Float32Array, lengths: boolean): void {
    const name = (tokens: Tokens, group: Group) =>
      tokens.tokens
        .slice(group.first, group.last + 1)
        .map((token) => shown(token.label))
        .join("");
    const best = [...weights.keys()]
      .sort((a, b) => Math.abs(weights[b] as number) - Math.abs(weights[a] as number))
      .slice(0, 3)
      .filter((j, n) => Math.abs(weights[j] as number) > (n === 0 ? 0 : 0.005 * view.full));
    const parts: (Node | string)[] = [
      head.queries === head.text.predicted ? "The row that predicts " : "",
      h("bdi", { class: "word" }, name(head.queries, view.queries[row] as Group)),
      best.length === 0 ? " reads nothing that is shown." : " reads ",
    ];
    best.forEach((j, n) => {
      const weight = weights[j] as number;
      parts.push(
        n > 0 ? ", " : "",
        h("bdi", { class: "word" }, name(head.keys, view.keys[j] as Group)),
        ` ${lengths ? figure(weight) : percent(weight)}`,
      );
    });
    this.says.replaceChildren(...parts);
  }
}
