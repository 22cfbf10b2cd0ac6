// A map as a matrix: labels that stay in sight, zoom, the value at the pointer or where arrow keys went.
import { css, ramp, table } from "../draw/colours";
import { paint, rootsOf, signed } from "../draw/thumbnail";
import { h, set } from "../dom";
import type { Map2 } from "../merge";
import type { Theme } from "../draw/colours";

export interface Plan {
  map: Map2;
  rows: string[];
  columns: string[];
  /** The value of the last colour. */
  full: number;
  hue: number | "diverging";
  theme: Theme;
  row: number;
  column: number | null;
  write: (value: number) => string;
  choose: (row: number, column: number) => void;
}

const largest = 30;

export class Matrix {
  private readonly canvas = h("canvas", { class: "cellcanvas", tabindex: 0, role: "application" });
  private readonly space = h("div", { class: "space" }, this.canvas);
  private readonly scroller = h("div", { class: "scroller" }, this.space);
  private readonly value = h("p", { class: "value-at", role: "status" });
  private readonly picture = document.createElement("canvas");
  private readonly less = h(
    "button",
    { type: "button", class: "plain", "aria-label": "Zoom out", click: () => this.zoomTo(this.cell / 1.6) },
    "−",
  );
  private readonly more = h(
    "button",
    { type: "button", class: "plain", "aria-label": "Zoom in", click: () => this.zoomTo(this.cell * 1.6) },
    "+",
  );
  readonly element = h(
    "div",
    { class: "matrix" },
    this.scroller,
    h("div", { class: "under" }, this.value, h("span", { class: "zoom" }, this.less, this.more)),
  );
  private plan: Plan | null = null;
  private painted: Float32Array | null = null;
  private paintedBy = "";
  private cell = 0;
  private fitted = 0;
  private left = 60;
  private top = 60;
  private at: [number, number] | null = null;

  constructor(
    private readonly label: string,
    private readonly most = 560,
  ) {
    this.scroller.addEventListener("scroll", () => this.draw());
    this.canvas.addEventListener("pointermove", (event) => this.point(this.cellAt(event)));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("click", (event) => {
      const at = this.cellAt(event);
      if (at) this.plan?.choose(at[0], at[1]);
    });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    let width = 0;
    new ResizeObserver(() => {
      if (Math.abs(this.element.clientWidth - width) < 2) return;
      width = this.element.clientWidth;
      this.fit();
      this.draw();
    }).observe(this.element);
  }

  show(plan: Plan): void {
    const before = this.plan;
    this.plan = plan;
    this.at = null;
    const by = `${plan.full} ${plan.hue} ${plan.theme}`;
    if (this.painted !== plan.map.values || this.paintedBy !== by) {
      const cells = plan.hue === "diverging" ? signed(plan.map.values, plan.full) : rootsOf(plan.map.values, plan.full);
      paint(this.picture, cells, plan.map.rows, plan.map.columns, table(plan.hue, plan.theme));
      [this.painted, this.paintedBy] = [plan.map.values, by];
    }
    set(
      this.canvas,
      "aria-label",
      `${this.label}: ${plan.map.rows} queries by ${plan.map.columns} keys. Arrow keys move.`,
    );
    if (!before || before.map.rows !== plan.map.rows || before.map.columns !== plan.map.columns) this.fit();
    this.draw();
    this.say();
  }

  private fit(): void {
    const { plan } = this;
    const width = this.element.clientWidth;
    if (!plan || width === 0) return;
    const context = this.canvas.getContext("2d") as CanvasRenderingContext2D;
    context.font = `700 ${this.font(13)}`;
    const wide = (all: string[]) =>
      Math.min(120, 18 + Math.max(0, ...all.slice(0, 200).map((text) => context.measureText(text).width)));
    [this.left, this.top] = [wide(plan.rows), wide(plan.columns)];
    const most = Math.min(width, this.most + this.left);
    this.fitted = Math.min(
      largest,
      Math.max(0.5, Math.min((most - this.left) / plan.map.columns, this.most / plan.map.rows)),
    );
    this.cell = this.fitted;
    this.size();
  }

  private font(size: number): string {
    return `${size}px ${getComputedStyle(this.element).fontFamily || "sans-serif"}`;
  }

  private size(): void {
    const { plan } = this;
    if (!plan) return;
    const [width, height] = [this.left + this.cell * plan.map.columns, this.top + this.cell * plan.map.rows];
    const view = [Math.min(width, this.element.clientWidth), Math.min(height, this.most + this.top)] as const;
    this.space.style.width = `${width}px`;
    this.space.style.height = `${height}px`;
    this.scroller.style.width = `${view[0]}px`;
    this.scroller.style.height = `${view[1]}px`;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(view[0] * ratio);
    this.canvas.height = Math.round(view[1] * ratio);
    this.canvas.style.width = `${view[0]}px`;
    this.canvas.style.height = `${view[1]}px`;
    this.less.disabled = this.cell <= this.fitted;
    this.more.disabled = this.cell >= largest;
  }

  private zoomTo(cell: number): void {
    if (!this.plan) return;
    this.cell = Math.min(largest, Math.max(this.fitted, cell));
    this.size();
    const room = [this.scroller.clientWidth - this.left, this.scroller.clientHeight - this.top] as const;
    this.scroller.scrollTo(
      ((this.plan.column ?? 0) + 0.5) * this.cell - room[0] / 2,
      (this.plan.row + 0.5) * this.cell - room[1] / 2,
    );
    this.draw();
  }

  private cellAt(event: MouseEvent): [number, number] | null {
    const { plan } = this;
    if (!plan) return null;
    const rect = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - rect.left - this.left + this.scroller.scrollLeft) / this.cell);
    const row = Math.floor((event.clientY - rect.top - this.top + this.scroller.scrollTop) / this.cell);
    const inside = event.clientX - rect.left >= this.left && event.clientY - rect.top >= this.top;
    return inside && row >= 0 && column >= 0 && row < plan.map.rows && column < plan.map.columns ? [row, column] : null;
  }

  private point(at: [number, number] | null): void {
    if (this.at?.[0] === at?.[0] && this.at?.[1] === at?.[1]) return;
    this.at = at;
    this.draw();
    this.say();
  }

  private key(event: KeyboardEvent): void {
    const { plan } = this;
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!plan || !step) return;
    event.preventDefault();
    const row = Math.min(plan.map.rows - 1, Math.max(0, plan.row + (step[0] as number)));
    const column = Math.min(plan.map.columns - 1, Math.max(0, (plan.column ?? 0) + (step[1] as number)));
    plan.choose(row, column);
    const { scroller } = this;
    const near = (value: number, from: number, room: number) =>
      value < from ? value : value + this.cell > from + room ? value + this.cell - room : from;
    scroller.scrollTo(
      near(column * this.cell, scroller.scrollLeft, scroller.clientWidth - this.left),
      near(row * this.cell, scroller.scrollTop, scroller.clientHeight - this.top),
    );
  }

  private say(): void {
    const { plan } = this;
    if (!plan) return;
    const at = this.at ?? (plan.column === null ? null : ([plan.row, plan.column] as const));
    if (!at) {
      this.value.textContent = "Rows are queries, columns keys.";
      return;
    }
    const value = plan.map.values[at[0] * plan.map.columns + at[1]] as number;
    this.value.replaceChildren(
      h("bdi", { class: "word" }, plan.rows[at[0]]),
      " → ",
      h("bdi", { class: "word" }, plan.columns[at[1]]),
      ` ${plan.write(value)}`,
    );
  }

  private draw(): void {
    const { plan, cell, left, top } = this;
    const context = this.canvas.getContext("2d");
    if (!plan || !context || this.canvas.width === 0 || cell === 0) return;
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [this.canvas.width / ratio, this.canvas.height / ratio];
    const [x, y] = [this.scroller.scrollLeft, this.scroller.scrollTop];
    const style = getComputedStyle(this.element);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.imageSmoothingEnabled = cell < 1;
    context.drawImage(
      this.picture,
      x / cell,
      y / cell,
      (width - left) / cell,
      (height - top) / cell,
      left,
      top,
      width - left,
      height - top,
    );
    const [row, column] = this.at ?? [plan.row, plan.column];
    context.strokeStyle = style.color;
    const frame = (cx: number, cy: number, w: number, hh: number) =>
      context.strokeRect(left + cx - x, top + cy - y, w, hh);
    context.save();
    context.beginPath();
    context.rect(left - 1, top - 1, width - left + 1, height - top + 1);
    context.clip();
    context.lineWidth = 1;
    context.globalAlpha = 0.55;
    frame(0, row * cell, plan.map.columns * cell, cell);
    if (column !== null) {
      frame(column * cell, 0, cell, plan.map.rows * cell);
      context.globalAlpha = 1;
      context.lineWidth = 2;
      frame(column * cell, row * cell, cell, cell);
    }
    context.restore();
    this.labels(context, style.color, row, column, [x, y], [width, height]);
    if (cell < 9) {
      context.strokeStyle = css(ramp(0.25, 252, plan.theme));
      context.strokeRect(left - 0.5, top - 0.5, width - left, height - top);
    }
  }

  /** Of small cells the labels of the chosen row and column alone. */
  private labels(
    context: CanvasRenderingContext2D,
    ink: string,
    row: number,
    column: number | null,
    [x, y]: [number, number],
    [width, height]: [number, number],
  ): void {
    const plan = this.plan as Plan;
    const { cell, left, top } = this;
    const size = Math.min(13, Math.max(10, cell * 0.72));
    context.textBaseline = "middle";
    context.fillStyle = ink;
    const cut = (text: string, room: number) => {
      let all = [...text];
      while (all.length > 2 && context.measureText(all.join("")).width > room) all = [...all.slice(0, -2), "…"];
      return all.join("");
    };
    const each = (
      count: number,
      from: number,
      room: number,
      chosen: number | null,
      write: (i: number, middle: number) => void,
    ) => {
      for (let i = Math.max(0, Math.floor(from / cell)); i < count && i * cell - from < room; i++) {
        const middle = (i + 0.5) * cell - from;
        if (middle < 0 || (cell < 9 && i !== chosen)) continue;
        context.font = `${i === chosen ? "700 " : ""}${this.font(size)}`;
        write(i, middle);
      }
    };
    context.textAlign = "right";
    each(plan.map.rows, y, height - top, row, (i, middle) =>
      context.fillText(cut(plan.rows[i] as string, left - 8), left - 6, top + middle),
    );
    context.textAlign = "left";
    each(plan.map.columns, x, width - left, column, (i, middle) => {
      context.save();
      context.translate(left + middle, top - 6);
      context.rotate(-Math.PI / 2);
      context.fillText(cut(plan.columns[i] as string, top - 8), 0, 0);
      context.restore();
    });
  }
}
