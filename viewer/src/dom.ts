// Elements in one call. Text goes in as text nodes only, so that no token can become markup.
type Value = string | number | boolean | null | undefined | Handler;
type Handler = (event: never) => void;
export type Child = Node | string | number | null | undefined | false;
export type Attributes = { [name: string]: Value };

function dress(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value as unknown as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children)
    if (child !== null && child !== undefined && child !== false)
      element.append(typeof child === "number" ? String(child) : child);
}

export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  dress(element, attributes, children);
  return element;
}

export function s<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[Tag] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  dress(element, attributes, children);
  return element;
}

/** Sets an attribute only where it changes: 512 tokens are dressed anew within a frame. */
export function set(element: Element, name: string, value: string | boolean): void {
  const to = String(value);
  if (element.getAttribute(name) !== to) element.setAttribute(name, to);
}

/** Which element of a row or grid an arrow key goes to; null: none, or another key. */
export function arrowTo(key: string, at: number, count: number, columns: number): number | null {
  const to =
    key === "ArrowRight"
      ? at + 1
      : key === "ArrowLeft"
        ? at - 1
        : key === "ArrowDown"
          ? at + columns
          : key === "ArrowUp"
            ? at - columns
            : key === "Home"
              ? 0
              : key === "End"
                ? count - 1
                : null;
  return to === null || to < 0 || to >= count ? null : to;
}

/** Work in slices of a few milliseconds, between frames; the function returned stops it. */
export function inSlices(work: Iterator<void>): () => void {
  let stopped = false;
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    if (stopped) return;
    const end = performance.now() + 14;
    do if (work.next().done) return;
    while (performance.now() < end);
    port2.postMessage(null);
  };
  // The first slice waits until what is there already has been drawn.
  requestAnimationFrame(() => port2.postMessage(null));
  return () => {
    stopped = true;
  };
}
