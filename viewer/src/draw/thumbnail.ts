// Small pictures of whole maps.
export const side = 64;

/** [rows, columns] bytes as at most 64 x 64, the largest of the cells that fall on one. */
export function pooled(
  from: Uint8Array,
  rows: number,
  columns: number,
  most = side,
): { rows: number; columns: number; cells: Uint8Array } {
  const r = Math.min(rows, most);
  const c = Math.min(columns, most);
  if (r === rows && c === columns) return { rows, columns, cells: from };
  const cells = new Uint8Array(r * c);
  const place = Uint16Array.from({ length: columns }, (_, j) => Math.floor((j * c) / columns));
  for (let i = 0; i < rows; i++) {
    const row = Math.floor((i * r) / rows) * c;
    for (let j = 0; j < columns; j++) {
      const at = row + (place[j] as number);
      const value = from[i * columns + j] as number;
      if (value > (cells[at] as number)) cells[at] = value;
    }
  }
  return { rows: r, columns: c, cells };
}

/** The same of bytes with 0 at 128: those far from 0 win, on either side. */
export function pooledChange(
  bytes: Uint8Array,
  rows: number,
  columns: number,
): { rows: number; columns: number; cells: Uint8Array } {
  const distance = bytes.map((byte) => Math.abs(byte - 128));
  const small = pooled(distance, rows, columns, side);
  if (small.cells === distance) return { rows, columns, cells: bytes };
  const up = pooled(bytes, rows, columns, side).cells;
  return { ...small, cells: small.cells.map((far, i) => ((up[i] as number) - 128 >= far ? 128 + far : 128 - far)) };
}

/** Weights as roots in 255ths, the form that colours are looked up by. `full` is the weight of the last colour. */
export function rootsOf(a: Float32Array, full = 1): Uint8Array {
  const to = new Uint8Array(a.length);
  const factor = full > 0 ? 1 / full : 0;
  for (let i = 0; i < a.length; i++) {
    const w = (a[i] as number) * factor;
    to[i] = w >= 1 ? 255 : w > 0 ? Math.round(255 * Math.sqrt(w)) : 0;
  }
  return to;
}

/** Differences −full to full as bytes with 0 at 128, by their roots too. */
export function signed(values: Float32Array, full = 1): Uint8Array {
  const to = new Uint8Array(values.length);
  for (let i = 0; i < values.length; i++) {
    const t = (values[i] as number) / full;
    to[i] = Math.round(128 + 127 * Math.sign(t) * Math.sqrt(Math.min(1, Math.abs(t))));
  }
  return to;
}

/** Bytes as pixels. */
export function pixels(cells: Uint8Array, colours: Uint32Array): Uint8ClampedArray {
  const to = new Uint32Array(cells.length);
  for (let i = 0; i < cells.length; i++) to[i] = colours[cells[i] as number] as number;
  return new Uint8ClampedArray(to.buffer);
}

/** Puts a picture of cells on a canvas, one pixel a cell; style sheets make it larger. */
export function paint(
  canvas: HTMLCanvasElement,
  cells: Uint8Array,
  rows: number,
  columns: number,
  colours: Uint32Array,
): void {
  canvas.width = Math.max(1, columns);
  canvas.height = Math.max(1, rows);
  const context = canvas.getContext("2d");
  if (!context || cells.length === 0) return;
  context.putImageData(new ImageData(pixels(cells, colours) as Uint8ClampedArray<ArrayBuffer>, columns, rows), 0, 0);
}
