// The text once for each method of attribution, its tokens coloured by how much they count.
import type { App, Show } from "../app";
import { fullScore, methodsOf, mostInWords, replacedInWords, whyNone, type Method, type Part } from "../attribution";
import { css, diverging, inkOn, shade, type Theme } from "../draw/colours";
import { h } from "../dom";
import { figure, visible } from "../names";
import type { Run, Text } from "../page";

function partOf(part: Part, full: number, theme: Theme): HTMLElement {
  const element = h(
    "bdi",
    {
      class: part.kept ? "scored kept" : "scored",
      title: `${part.word}: ${figure(part.score)}`,
      "data-score": part.score,
    },
    part.word,
  );
  if (part.kept) return element;
  const colour = diverging(Math.sign(part.score) * shade(Math.abs(part.score), full), theme);
  element.style.background = css(colour);
  element.style.color = inkOn(colour);
  return element;
}

function methodOf(method: Method, theme: Theme): HTMLElement {
  const full = fullScore(method);
  const lines = (["source", "target"] as const)
    .map((side) => method.parts.filter((part) => part.side === side))
    .filter((parts) => parts.length > 0);
  return h(
    "section",
    { class: "method", "data-method": method.name },
    h("h2", {}, method.title),
    h("p", { class: "quiet" }, method.about),
    ...lines.map((parts) =>
      h(
        "p",
        { class: "scores" },
        ...parts.flatMap((part, i) => [part.apart && i > 0 ? " " : "", partOf(part, full, theme)]),
      ),
    ),
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
      const why = whyNone(of) ?? (of.attribution === null ? "Attributions were left out of this page." : null);
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
