// What is pressed in many views: a head's name that chooses it, and the copying of a table.
import type { App } from "../app";
import { h } from "../dom";

export function headLink(app: App, name: string, title: string): HTMLButtonElement {
  return h(
    "button",
    { type: "button", class: "link", "data-go": name, click: () => app.choose({ head: name, key: null }) },
    title,
  );
}

/** Copies also where the clipboard is closed to the page, as in frames. */
async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = h("textarea", {});
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** A button that copies a table as text with tabs, and says so until `quiet()`. */
export function copyButton(tabbed: () => string): { element: HTMLElement; quiet: () => void } {
  const said = h("span", { role: "status" });
  const click = () =>
    void copy(tabbed()).then(() => {
      said.textContent = "Copied, with tabs.";
    });
  const element = h(
    "div",
    { class: "above" },
    h("button", { type: "button", class: "plain", "data-do": "copy", click }, "Copy the table"),
    said,
  );
  return {
    element,
    quiet: () => {
      said.textContent = "";
    },
  };
}
