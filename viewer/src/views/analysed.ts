// A view of one analysis of the chosen text or model, or the sentence that says why there is none.
import type { App, Show } from "../app";
import { h } from "../dom";
import { visible } from "../names";
import { found, whyNone, type None } from "../none";
import type { Run, Text } from "../page";
import type { Choice } from "../state";

export interface Analysed<T> {
  run: Run;
  text: Text;
  its: T;
}

interface Analysis<T extends object> {
  /** Of the view's element. */
  className: string;
  /** "Lenses": what may have been left out. */
  things: string;
  of(run: Run, text: Text): T | None | null;
  /** `before` is null when everything must be drawn, which `element` then shows. */
  update(analysed: Analysed<T>, now: Choice, before: Choice | null, element: HTMLElement): void;
}

export function analysisView<T extends object>(app: App, { className, things, of, update }: Analysis<T>): Show {
  const element = h("div", { class: `view ${className}` });
  return {
    element,
    update(now, before) {
      const run = app.page.runs[now.run] as Run;
      const text = run.texts[now.text] as Text;
      const all = of(run, text);
      const its = found<T>(all);
      if (!its) {
        element.replaceChildren(h("p", {}, visible(whyNone(all, things) ?? "")));
        return;
      }
      const same = before && before.run === now.run && before.text === now.text;
      update({ run, text, its }, now, same ? before : null, element);
    },
  };
}
