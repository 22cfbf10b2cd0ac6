// Two texts word by word: which words of one the other has in the same order.

export interface ComparedWord {
  word: string;
  /** The other text has it, too. */
  kept: boolean;
}

const wordsOf = (text: string): string[] => text.split(/\s+/u).filter((word) => word !== "");

/** The longest text that is compared; of a longer one only equal beginnings and ends are kept. */
const mostWords = 400;

/** Of each word of `text` whether it belongs to a longest common subsequence with the words of `other`. */
export function compared(text: string, other: string): ComparedWord[] {
  const a = wordsOf(text);
  const b = wordsOf(other);
  let begin = 0;
  while (begin < a.length && begin < b.length && a[begin] === b[begin]) begin++;
  let end = 0;
  while (end < a.length - begin && end < b.length - begin && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const middle = a.length <= mostWords && b.length <= mostWords;
  const kept = middle ? keptOf(a.slice(begin, a.length - end), b.slice(begin, b.length - end)) : [];
  return a.map((word, i) => ({ word, kept: i < begin || i >= a.length - end || (kept[i - begin] ?? false) }));
}

/** lengths[i][j]: of the longest common subsequence of a from i on and b from j on. */
function keptOf(a: string[], b: string[]): boolean[] {
  const lengths = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  const at = (i: number, j: number): number => lengths[i]?.[j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--)
      (lengths[i] as Uint16Array)[j] = a[i] === b[j] ? 1 + at(i + 1, j + 1) : Math.max(at(i + 1, j), at(i, j + 1));
  }
  const kept = a.map(() => false);
  for (let i = 0, j = 0; i < a.length && j < b.length; ) {
    if (a[i] === b[j]) {
      kept[i++] = true;
      j++;
    } else if (at(i + 1, j) >= at(i, j + 1)) i++;
    else j++;
  }
  return kept;
}
