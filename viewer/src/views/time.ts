// Heads through training: a slider over checkpoints, and each head's figures as small lines.
import { figuresOf, type App, type Show } from "../app";
import { courseSvg, type Course } from "../draw/lines";
import type { Column } from "../evidence";
import { h } from "../dom";
import { visible } from "../names";
import type { Run } from "../page";
import type { Choice } from "../state";
import { Grid, paintHead, valueText } from "./grid";
import { RunningText } from "./running";
import { Toggles } from "./toggles";

/** A figure of a head in every run, within the range of that figure over all heads and runs. */
export function coursesOf(runs: Run[], id: string): { column: Column; of: (head: string) => Course } | null {
  const columns = runs.map((run) => figuresOf(run).all.find((one) => one.id === id) ?? null);
  const column = columns.find((one) => one !== null);
  if (!column) return null;
  const all = columns.flatMap((one) => (one ? [...one.values.values()] : []));
  const low = column.unit === "signed" ? Math.min(0, ...all) : 0;
  const high = column.unit === "share" ? 1 : Math.max(...all);
  return { column, of: (head) => ({ values: columns.map((one) => one?.values.get(head) ?? null), low, high }) };
}

export function timeView(app: App): Show {
  const { runs } = app.page;
  const figure = (now: Choice) => coursesOf(runs, now.by.replace(/^-/, "")) ?? coursesOf(runs, "entropy");
  let made: { by: string; courses: ReturnType<typeof coursesOf> } | null = null;
  const below = (name: string, now: Choice): Node => {
    if (made?.by !== now.by) made = { by: now.by, courses: figure(now) };
    return made.courses ? courseSvg(made.courses.of(name), now.run, 60, 18, "") : h("span", {});
  };
  const running = new RunningText(app);
  const toggles = new Toggles(app);
  const grid = new Grid(app, paintHead(app), below);
  const slider = h("input", {
    type: "range",
    min: 0,
    max: runs.length - 1,
    step: 1,
    "aria-label": "Checkpoint",
    input: () => app.choose({ run: Number(slider.value) }, "time"),
  });
  const label = h("output", { class: "checkpoint" });
  const lines = h("div", { class: "courses" });
  const element = h(
    "div",
    { class: "view" },
    h(
      "div",
      { class: "slider" },
      h("span", { class: "quiet" }, visible((runs[0] as Run).name)),
      slider,
      h("span", { class: "quiet" }, visible((runs[runs.length - 1] as Run).name)),
      label,
    ),
    h(
      "div",
      { class: "beside" },
      h(
        "section",
        { "aria-label": "The text" },
        running.element,
        toggles.element,
        h("h2", { class: "courses-title" }, "This head through training"),
        lines,
      ),
      grid.element,
    ),
  );
  return {
    element,
    update(now, before) {
      slider.value = String(now.run);
      const name = visible((runs[now.run] as Run).name);
      slider.setAttribute("aria-valuetext", name);
      label.textContent = name;
      running.update(now);
      toggles.update(now);
      grid.update(now, before && before.by !== now.by ? null : before);
      const all = figuresOf(runs[now.run] as Run).all;
      lines.replaceChildren(
        ...all.flatMap((column) => {
          const courses = coursesOf(runs, column.id);
          const value = column.values.get(now.head);
          if (!courses || value === undefined) return [];
          return [
            h(
              "figure",
              { title: column.about },
              h("figcaption", {}, column.title, " ", h("b", {}, valueText(column, value))),
              courseSvg(
                courses.of(now.head),
                now.run,
                170,
                44,
                `${column.title} through training, now ${valueText(column, value)}`,
              ),
            ),
          ];
        }),
      );
    },
  };
}
