// A line of text whose tokens are coloured by their scores.
import { css, diverging, inkOn, shade, type Theme } from "../draw/colours";
import { h } from "../dom";
import { figure } from "../names";
import type { Scored } from "../written";

function tokenOf(part: Scored, full: number, theme: Theme): HTMLElement {
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

export function scoredLine(parts: Scored[], full: number, theme: Theme): HTMLElement {
  return h(
    "p",
    { class: "scores" },
    ...parts.flatMap((part, i) => [part.apart && i > 0 ? " " : "", tokenOf(part, full, theme)]),
  );
}
