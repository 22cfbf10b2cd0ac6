// The text once for each method of attribution, its tokens coloured by how much they count.
import type { App, Show } from "../app";
import { methodsOf, mostInWords, replacedInWords, type Method } from "../attribution";
import type { Theme } from "../draw/colours";
import { h } from "../dom";
import { visible } from "../names";
import { whyNone } from "../none";
import type { Run, Text } from "../page";
import { fullScore } from "../written";
import { scoredLine } from "./scored";

function methodOf(method: Method, theme: Theme): HTMLElement {
  const full = fullScore(method.parts);
  const lines = (["source", "target"] as const)
    .map((side) => method.parts.filter((part) => part.side === side))
    .filter((parts) => parts.length > 0);
  return h(
    "section",
    { class: "method", "data-method": method.name },
    h("h2", {}, method.title),
    h("p", { class: "quiet" }, method.about),
    ...lines.map((parts) => scoredLine(parts, full, theme)),
    h("p", { class: "quiet" }, "Most: ", h("bdi", {}, mostInWords(method))),
  );
}

const scale =
  "The deeper the colour, the more a token counts, on a scale of each method's own; tokens in grey are never replaced.";

export function attributionView(app: App): Show {
  const element = h("div", { class: "view" });
  return {
    element,
    update(now, before) {
      if (before && before.run === now.run && before.text === now.text) return;
      const run = app.page.runs[now.run] as Run;
      const of = run.texts[now.text] as Text;
      const why = whyNone(of.attribution, "Attributions");
      if (why !== null) return element.replaceChildren(h("p", {}, visible(why)));
      element.replaceChildren(
        h("p", { class: "quiet" }, `${replacedInWords(of)} ${scale}`),
        h("div", { class: "methods" }, ...methodsOf(of).map((method) => methodOf(method, app.theme()))),
        h(
          "p",
          { class: "quiet" },
          "Which of them to trust on this model is measured by ",
          h("code", {}, `multihead heads attribution ${visible(run.name)} -i FILE`),
          ".",
        ),
      );
    },
  };
}
