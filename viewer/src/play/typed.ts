// The field for a sentence of the reader's own.
import { h } from "../dom";
import { mostText } from "./address";

export interface TypedText {
  element: HTMLElement;
  /** Shows this sentence, unless the reader is typing another. */
  show(text: string): void;
}

/** read: called with what was typed, once it has been. */
export function typedText(read: (text: string) => void): TypedText {
  const input = h("input", { type: "text", maxlength: mostText, name: "text", autocomplete: "off" });
  const tell = (event: Event) => {
    event.preventDefault();
    read(input.value.trim());
  };
  input.addEventListener("change", tell);
  const element = h(
    "form",
    { class: "typed", submit: tell },
    h("label", {}, h("span", {}, "Your sentence"), input),
    h("button", { type: "submit" }, "Read it"),
  );
  return {
    element,
    show(text) {
      if (document.activeElement !== input) input.value = text;
    },
  };
}
