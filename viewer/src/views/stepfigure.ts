// A matrix of the walk: its numbers as colours, or as numbers where there is room, with the row of the word in focus.
import { css, inkOn, oklch, ramp, type Rgb, type Theme } from "../draw/colours";
import { h, set } from "../dom";
import { figure } from "../names";
import type { WalkStep } from "../page";
import { kindOf } from "../walk";

const hueOfKind = { q: 257, k: 30, v: 158, x: 300 };

/** What is made gets the hue of its kind where it is above 0, and grey where it is below. */
export function colourOf(value: number, most: number, kind: keyof typeof hueOfKind, theme: Theme): Rgb {
  if (!Number.isFinite(value)) return theme === "light" ? [236, 236, 238] : [44, 47, 53];
  const t = most > 0 ? Math.min(1, Math.abs(value) / most) ** 0.7 : 0;
  if (value >= 0) return ramp(t, hueOfKind[kind], theme);
  return theme === "light" ? oklch(0.975 - 0.6 * t, 0.004, 260) : oklch(0.235 + 0.5 * t, 0.004, 260);
}

export interface StepPlan {
  step: WalkStep;
  values: Float32Array;
  rows: string[] | null;
  columns: string[] | null;
  /** The row of the word, the chosen cell, and what takes part in a sum elsewhere. */
  word: number | null;
  chosen: [number, number] | null;
  part: { row: number | null; column: number | null } | null;
  theme: Theme;
  choose: (row: number, column: number) => void;
}

export class StepFigure {
  readonly canvas = h("canvas", { tabindex: 0, role: "application" });
  private readonly caption = h("figcaption", {});
  readonly element = h("figure", { class: "step" }, this.caption, this.canvas);
  private plan: StepPlan | null = null;
  private sizes = { left: 0, top: 0, width: 10, height: 10 };

  constructor(private readonly large: boolean) {
    this.canvas.addEventListener("click", (event) => {
      const { plan, sizes } = this;
      if (!plan) return;
      const rect = this.canvas.getBoundingClientRect();
      const scale = rect.width / (this.canvas.width / (window.devicePixelRatio || 1)) || 1;
      const row = Math.floor(((event.clientY - rect.top) / scale - sizes.top) / sizes.height);
      const column = Math.floor(((event.clientX - rect.left) / scale - sizes.left) / sizes.width);
      if (row >= 0 && column >= 0 && row < plan.step.rows && column < plan.step.columns) plan.choose(row, column);
    });
    this.canvas.addEventListener("keydown", (event) => {
      const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      const { plan } = this;
      if (!plan || !move) return;
      event.preventDefault();
      event.stopPropagation();
      const [row, column] = plan.chosen ?? [plan.word ?? 0, -(move[1] as number)];
      plan.choose(
        Math.min(plan.step.rows - 1, Math.max(0, row + (move[0] as number))),
        Math.min(plan.step.columns - 1, Math.max(0, column + (move[1] as number))),
      );
    });
  }

  show(plan: StepPlan): void {
    this.plan = plan;
    const { step } = plan;
    const kind = kindOf(step.name);
    this.element.className = `step kind-${kind}`;
    this.element.dataset.step = step.name;
    this.caption.replaceChildren(h("b", { class: kind }, step.name), ` ${step.rows} × ${step.columns}`);
    set(
      this.canvas,
      "aria-label",
      `${step.name}, ${step.rows} by ${step.columns} numbers. Arrow keys move from cell to cell.`,
    );
    this.draw(plan);
  }

  private draw(plan: StepPlan): void {
    const { step, values } = plan;
    const written = plan.columns !== null && step.columns <= 14 && step.rows <= 40 && this.large;
    const [wide, high] = this.large ? [500, 330] : [190, 170];
    const width = written ? 52 : Math.min(16, Math.max(0.4, wide / step.columns));
    const height = written ? 24 : Math.min(plan.rows ? 22 : 16, Math.max(0.4, high / step.rows));
    const left = plan.rows && height >= 11 ? 74 : 0;
    const top = plan.columns && width >= 11 ? 60 : 0;
    this.sizes = { left, top, width, height };
    const ratio = window.devicePixelRatio || 1;
    const size = [left + Math.max(3, width * step.columns) + 2, top + Math.max(6, height * step.rows) + 2] as const;
    this.canvas.width = Math.ceil(size[0] * ratio);
    this.canvas.height = Math.ceil(size[1] * ratio);
    this.canvas.style.width = `${size[0]}px`;
    const context = this.canvas.getContext("2d");
    if (!context) return;
    const style = getComputedStyle(document.body);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const kind = kindOf(step.name);
    const most = values.reduce((a, b) => (Number.isFinite(b) ? Math.max(a, Math.abs(b)) : a), 0);
    context.font = `12px ${style.fontFamily}`;
    context.textBaseline = "middle";
    if (!written && (width < 4 || height < 4)) this.small(context, plan, most);
    else {
      for (let i = 0; i < step.rows; i++) {
        for (let j = 0; j < step.columns; j++) {
          const value = values[i * step.columns + j] as number;
          const colour = colourOf(value, most, kind, plan.theme);
          context.fillStyle = css(colour);
          context.fillRect(
            left + j * width,
            top + i * height,
            width - (width > 6 ? 1 : 0),
            height - (height > 6 ? 1 : 0),
          );
          if (!written) continue;
          context.fillStyle = inkOn(colour);
          context.textAlign = "right";
          context.fillText(figure(value), left + (j + 1) * width - 5, top + (i + 0.5) * height);
        }
      }
    }
    this.labels(context, plan, style.color);
    this.frames(context, plan, style.color);
  }

  /** Of many cells a picture with a pixel for each. */
  private small(context: CanvasRenderingContext2D, plan: StepPlan, most: number): void {
    const { rows, columns, name } = plan.step;
    const colours = Array.from({ length: 129 }, (_, i) =>
      colourOf(((i - 64) / 64) * most, most, kindOf(name), plan.theme),
    );
    const image = new ImageData(columns, rows);
    plan.values.forEach((value, i) => {
      const colour = colours[most > 0 && Number.isFinite(value) ? Math.round(64 + (64 * value) / most) : 64] as Rgb;
      image.data.set([...colour, 255], 4 * i);
    });
    const picture = document.createElement("canvas");
    [picture.width, picture.height] = [columns, rows];
    picture.getContext("2d")?.putImageData(image, 0, 0);
    context.imageSmoothingEnabled = this.sizes.width < 1;
    context.drawImage(picture, this.sizes.left, this.sizes.top, columns * this.sizes.width, rows * this.sizes.height);
  }

  private labels(context: CanvasRenderingContext2D, plan: StepPlan, ink: string): void {
    const { left, top, width, height } = this.sizes;
    const family = getComputedStyle(document.body).fontFamily;
    context.fillStyle = ink;
    if (left > 0) {
      context.textAlign = "right";
      plan.rows?.forEach((text, i) => {
        context.font = `${i === plan.word ? "700 " : ""}${Math.min(12, height)}px ${family}`;
        context.fillText(text, left - 6, top + (i + 0.5) * height, left - 8);
      });
    }
    context.font = `12px ${family}`;
    if (top === 0) return;
    context.textAlign = "left";
    plan.columns?.forEach((text, j) => {
      context.save();
      context.translate(left + (j + 0.5) * width, top - 5);
      context.rotate(-Math.PI / 2);
      context.fillText(text, 0, 0, top - 6);
      context.restore();
    });
  }

  private frames(context: CanvasRenderingContext2D, plan: StepPlan, ink: string): void {
    const { left, top, width, height } = this.sizes;
    const { rows, columns } = plan.step;
    const frame = (row: number | null, column: number | null, line: number) => {
      context.lineWidth = Math.min(line, Math.max(1, Math.min(column === null ? 9 : width, row === null ? 9 : height)));
      context.strokeStyle = ink;
      context.strokeRect(
        left + (column ?? 0) * width,
        top + (row ?? 0) * height,
        Math.max(2, column === null ? columns * width : width),
        Math.max(2, row === null ? rows * height : height),
      );
    };
    if (plan.word !== null && !plan.part) frame(plan.word, null, 1);
    if (plan.part) frame(plan.part.row, plan.part.column, 2);
    if (plan.chosen) frame(plan.chosen[0], plan.chosen[1], 2.5);
  }
}
