// Colours: a ramp of lightness for weights, its hue that of the head; two hues that meet in the middle for differences.
// Lightness alone carries the figure, so nothing depends on telling hues apart.

export type Theme = "light" | "dark";
export type Rgb = [number, number, number];

/**
 * Hues of heads in turn: blue, vermilion, green, purple, ochre, violet; six that colour-blind readers tell apart by
 * name and place.
 */
export const hues = [252, 42, 165, 345, 80, 300] as const;
export const hueOf = (head: number): number => hues[head % hues.length] as number;

/** OKLCH (Ottosson 2020) to sRGB; what is outside of it is cut. */
export function oklch(lightness: number, chroma: number, hue: number): Rgb {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return linear.map((x) => {
    const y = Math.min(1, Math.max(0, x));
    return Math.round(255 * (y <= 0.0031308 ? 12.92 * y : 1.055 * y ** (1 / 2.4) - 0.055));
  }) as Rgb;
}

export const css = ([r, g, b]: Rgb): string => `rgb(${r} ${g} ${b})`;

/** The colour of t in [0, 1]: from nearly the paper to dark ink, or in the dark from nearly the paper to bright. */
export function ramp(t: number, hue: number, theme: Theme): Rgb {
  const x = Math.min(1, Math.max(0, t));
  return theme === "light"
    ? oklch(0.975 - 0.575 * x, 0.004 + 0.15 * Math.sin(Math.PI * Math.min(1, 0.15 + x * 0.6)) * x ** 0.6, hue)
    : oklch(0.235 + 0.605 * x, 0.006 + 0.135 * x ** 0.7, hue);
}

/** What is below 0 on a head's text: the same lightness without a hue. */
export function grey(t: number, theme: Theme): Rgb {
  return theme === "light" ? oklch(0.975 - 0.575 * t, 0.003, 260) : oklch(0.235 + 0.605 * t, 0.003, 260);
}

/** −1 vermilion, 0 the paper, 1 blue. */
export function diverging(t: number, theme: Theme): Rgb {
  return ramp(Math.abs(t), t < 0 ? 42 : 252, theme);
}

const tables = new Map<string, Uint32Array>();

/** 256 colours as pixels of a canvas (ABGR), `of` being a hue or the diverging scale with 0 at 128. */
export function table(of: number | "diverging", theme: Theme): Uint32Array {
  const key = `${of} ${theme}`;
  const before = tables.get(key);
  if (before) return before;
  const made = Uint32Array.from({ length: 256 }, (_, i) => {
    const [r, g, b] = of === "diverging" ? diverging((i - 128) / 127, theme) : ramp(i / 255, of, theme);
    return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
  });
  tables.set(key, made);
  return made;
}

/** How dark a weight is drawn: its root, on one scale for all heads, so that small weights are seen too. */
export const shade = (weight: number, most = 1): number =>
  weight <= 0 || most <= 0 ? 0 : Math.min(1, Math.sqrt(weight / most));

/** Ink that can be read on a colour: the better of black and white by WCAG 2's contrast. */
export function inkOn([r, g, b]: Rgb): "#000" | "#fff" {
  const light = [r, g, b].map((v) =>
    v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4,
  ) as Rgb;
  const luminance = 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2];
  return (luminance + 0.05) / 0.05 > 1.05 / (luminance + 0.05) ? "#000" : "#fff";
}
