// The first screen: a head on running text, and all heads beside it.
import { headOf, type App, type Show } from "../app";
import { h } from "../dom";
import { Grid, paintHead } from "./grid";
import { RunningText } from "./running";
import { Toggles } from "./toggles";

export function textView(app: App): Show {
  const running = new RunningText(app);
  const grid = new Grid(app, paintHead(app));
  const toggles = new Toggles(app);
  const element = h(
    "div",
    { class: "view beside" },
    h("section", { class: "reading", "aria-label": "The text" }, running.element, toggles.element),
    grid.element,
  );
  return {
    element,
    update(now, before) {
      element.classList.toggle("pair", headOf(app, now)?.text.target !== null);
      running.update(now);
      toggles.update(now);
      grid.update(now, before);
    },
  };
}
