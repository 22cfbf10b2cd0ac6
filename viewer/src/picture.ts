// SVG and PNG of what is on the page: boxes, texts, canvases and curves as they lie on the screen.
const space = "http://www.w3.org/2000/svg";

function make(tag: string, attributes: { [name: string]: string | number }): SVGElement {
  const element = document.createElementNS(space, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  return element;
}

const clear = (colour: string): boolean => colour === "transparent" || colour === "rgba(0, 0, 0, 0)";

/** What is there to be worked with, not to be looked at. */
const controls = "select, input, .finder, .toggles, .above, .zoom, .adding .slider";

interface Frame {
  to: SVGElement;
  left: number;
  top: number;
}

function box(element: Element, style: CSSStyleDeclaration, frame: Frame): void {
  const rect = element.getBoundingClientRect();
  const border = Number.parseFloat(style.borderTopWidth) || 0;
  const edge =
    border > 0 &&
    style.borderTopStyle !== "none" &&
    !clear(style.borderTopColor) &&
    Number.parseFloat(style.borderLeftWidth) > 0;
  if ((clear(style.backgroundColor) && !edge) || rect.width === 0) return;
  frame.to.append(
    make("rect", {
      x: rect.left - frame.left,
      y: rect.top - frame.top,
      width: rect.width,
      height: rect.height,
      rx: Math.min(rect.height / 2, Number.parseFloat(style.borderTopLeftRadius) || 0),
      fill: clear(style.backgroundColor) ? "none" : style.backgroundColor,
      stroke: edge ? style.borderTopColor : "none",
      "stroke-width": edge ? border : 0,
    }),
  );
}

/** Each line of a text node as a text of its own. */
function texts(node: Text, style: CSSStyleDeclaration, frame: Frame): void {
  const range = document.createRange();
  const { data } = node;
  let from = 0;
  let top = Number.NaN;
  const flush = (to: number) => {
    const part = data.slice(from, to);
    if (part.trim() === "") return;
    range.setStart(node, from + part.length - part.trimStart().length);
    range.setEnd(node, from + part.trimEnd().length);
    const rect = range.getBoundingClientRect();
    if (rect.width === 0) return;
    const size = Number.parseFloat(style.fontSize);
    const text = make("text", {
      x: rect.left - frame.left,
      y: rect.top - frame.top + rect.height / 2 + size * 0.35,
      "font-size": size,
      "font-family": style.fontFamily.replaceAll('"', "'"),
      "font-weight": style.fontWeight,
      "font-style": style.fontStyle,
      fill: style.color,
    });
    text.textContent = part.trim();
    frame.to.append(text);
  };
  for (let i = 0; i < data.length; i++) {
    if (/\s/.test(data[i] as string)) continue;
    range.setStart(node, i);
    range.setEnd(node, i + 1);
    const rects = range.getClientRects();
    const rect = rects[0];
    if (!rect || (rect.width === 0 && rect.height === 0)) continue;
    if (!Number.isNaN(top) && Math.abs(rect.top - top) > rect.height / 2) {
      flush(i);
      from = i;
    }
    top = rect.top;
  }
  flush(data.length);
}

function curves(svg: SVGSVGElement, frame: Frame): void {
  const rect = svg.getBoundingClientRect();
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const before = [...svg.querySelectorAll<SVGElement>("*")];
  [...copy.querySelectorAll<SVGElement>("*")].forEach((element, i) => {
    const style = getComputedStyle(before[i] as SVGElement);
    for (const name of ["fill", "stroke", "stroke-width", "font-size", "font-family", "opacity"])
      element.setAttribute(name, style.getPropertyValue(name).replaceAll('"', "'"));
    element.removeAttribute("class");
    element.removeAttribute("style");
  });
  const group = make("svg", {
    x: rect.left - frame.left,
    y: rect.top - frame.top,
    width: rect.width,
    height: rect.height,
    overflow: "visible",
  });
  for (const name of ["viewBox", "preserveAspectRatio"]) {
    const value = svg.getAttribute(name);
    if (value) group.setAttribute(name, value);
  }
  group.append(...copy.childNodes);
  frame.to.append(group);
}

function walk(element: Element, frame: Frame): void {
  const style = getComputedStyle(element);
  if (style.display === "none" || style.visibility === "hidden") return;
  if (element instanceof SVGSVGElement) {
    curves(element, frame);
    return;
  }
  const opacity = Number(style.opacity);
  const inner = opacity < 1 ? { ...frame, to: frame.to.appendChild(make("g", { opacity })) } : frame;
  box(element, style, inner);
  if (element instanceof HTMLCanvasElement) {
    const rect = element.getBoundingClientRect();
    const image = make("image", {
      x: rect.left - frame.left,
      y: rect.top - frame.top,
      width: rect.width,
      height: rect.height,
      preserveAspectRatio: "none",
      href: element.toDataURL("image/png"),
    });
    if (style.imageRendering === "pixelated") image.setAttribute("image-rendering", "pixelated");
    inner.to.append(image);
    if (element.closest('[aria-pressed="true"]')) {
      inner.to.append(
        make("rect", {
          x: rect.left - frame.left,
          y: rect.top - frame.top,
          width: rect.width,
          height: rect.height,
          rx: 4,
          fill: "none",
          stroke: style.color,
          "stroke-width": 2.5,
        }),
      );
    }
    return;
  }
  if (element.matches(controls)) return;
  const folded = element instanceof HTMLDetailsElement && !element.open;
  for (const child of folded ? element.querySelectorAll("summary") : element.childNodes) {
    if (child instanceof Text) texts(child, style, inner);
    else if (child instanceof Element) walk(child, inner);
  }
}

/** Shows all of what scrolls, from its beginning; what is returned puts it back. */
function unrolled(element: HTMLElement): () => void {
  const scrolled = [...element.querySelectorAll("*")]
    .map((one) => ({ one, left: one.scrollLeft, top: one.scrollTop }))
    .filter(({ left, top }) => left !== 0 || top !== 0);
  element.classList.add("pictured");
  for (const { one } of scrolled) one.scrollTo(0, 0);
  return () => {
    element.classList.remove("pictured");
    for (const { one, left, top } of scrolled) one.scrollTo(left, top);
  };
}

/** What `element` shows, as a standalone SVG with `title` above it. */
export function svgOf(element: HTMLElement, title: string): string {
  const back = unrolled(element);
  try {
    return drawn(element, title);
  } finally {
    back();
  }
}

function drawn(element: HTMLElement, title: string): string {
  const rect = element.getBoundingClientRect();
  const head = 48;
  const width = Math.ceil(Math.max(rect.width, element.scrollWidth)) + 48;
  const height = Math.ceil(rect.height) + head + 32;
  const body = getComputedStyle(document.body);
  const svg = make("svg", { xmlns: space, width, height, viewBox: `0 0 ${width} ${height}` });
  svg.append(make("rect", { width, height, fill: clear(body.backgroundColor) ? "white" : body.backgroundColor }));
  const text = make("text", {
    x: 24,
    y: 34,
    "font-size": 20,
    "font-weight": 600,
    "font-family": body.fontFamily.replaceAll('"', "'"),
    fill: body.color,
  });
  text.textContent = title;
  svg.append(text);
  const to = svg.appendChild(make("g", {}));
  walk(element, { to, left: rect.left - 24, top: rect.top - head });
  return new XMLSerializer().serializeToString(svg);
}

/** The same as PNG, twice as large. */
export async function pngOf(element: HTMLElement, title: string): Promise<Blob> {
  const svg = svgOf(element, title);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const scale = Math.min(2, 16000 / Math.max(image.width, image.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.round(image.width * scale);
  canvas.height = Math.round(image.height * scale);
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("The picture is too large."))), "image/png"),
  );
}

export function save(what: string | Blob, type: string, name: string): void {
  const url = URL.createObjectURL(typeof what === "string" ? new Blob([what], { type }) : what);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
