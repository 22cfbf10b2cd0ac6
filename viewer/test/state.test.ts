import { describe, expect, it } from "vitest";
import { placeInWords, shown, splitHead, visible } from "../src/names";
import {
  begin,
  choiceOf,
  chosen,
  firstChoice,
  fragmentOf,
  redone,
  settled,
  undone,
  viewsOf,
  type Choice,
} from "../src/state";
import { encoder, several, translator } from "./pages";

const { page } = encoder();
const first = firstChoice(page);

describe("the choice", () => {
  it("begins with what the page opens at", () => {
    expect(first).toMatchObject({ view: "text", head: "encoder.0.self_attention.1", query: 1, key: null });
  });

  it("goes into the fragment and comes back", () => {
    const choice: Choice = {
      ...first,
      view: "head",
      head: "encoder.2.self_attention.3",
      query: 4,
      key: 0,
      words: true,
      by: "distance",
      name: "a&b=c #",
      step: 3,
      cell: "q_0:1:2",
    };
    expect(fragmentOf(choice)).toContain("#view=head&head=encoder.2.self_attention.3&query=4&key=0");
    expect(choiceOf(fragmentOf(choice), first)).toEqual(choice);
    expect(choiceOf("", first)).toEqual(first);
  });

  it("is put right where a fragment is wrong", () => {
    const wrong = choiceOf(
      "#view=nonsense&head=encoder.9.x.1&query=999&key=-3&run=77&text=1e9&words=maybe&hide=1",
      first,
    );
    expect(settled(wrong, page)).toMatchObject({
      view: "text",
      head: first.head,
      query: 11,
      key: null,
      run: 0,
      text: 0,
      words: false,
      hide: true,
    });
    expect(settled({ ...first, view: "compare" }, page).view).toBe("text");
  });

  it("is undone and redone", () => {
    const two = chosen(chosen(begin(first), { ...first, query: 2 }), { ...first, query: 3 });
    const back = undone(two);
    expect(back.now.query).toBe(2);
    expect(redone(back).now.query).toBe(3);
    expect(undone(undone(undone(back))).now).toEqual(first);
    expect(chosen(back, { ...first, query: 7 }).future).toEqual([]);
    expect(chosen(two, { ...first, query: 4 }, true).past).toEqual(two.past);
    expect(chosen(two, two.now)).toBe(two);
  });

  it("has the views that there are data for", () => {
    expect(viewsOf(page)).toEqual(["text", "table", "head", "walk"]);
    expect(viewsOf(translator().page)).toEqual(["text", "table", "head"]);
    expect(viewsOf(several("compare", 2).page)).toEqual(["text", "table", "head", "compare"]);
    expect(viewsOf(several("time", 3).page)).toEqual(["text", "table", "head", "compare", "time"]);
  });
});

describe("names", () => {
  it("of heads", () => {
    expect(splitHead("encoder.3.self_attention.1")).toEqual({ attention: "encoder.3.self_attention", head: 1 });
    expect(splitHead("encoder")).toBeNull();
    expect(placeInWords(page.runs[0]?.attentions[0] as never, 2)).toBe("Encoder 0, head 2");
  });

  it("of tokens are seen", () => {
    expect(visible("\u0000\u202E\n")).toBe("␀⟨U+202E⟩⏎");
    expect(visible("👩‍👩‍👧‍👦")).toBe("👩‍👩‍👧‍👦");
    expect(shown("▁dog")).toBe("dog");
    expect(shown("▁")).toBe("▁");
    expect(shown("")).toBe("∅");
    expect(shown(" ")).toBe("␣");
    expect([...shown("x".repeat(10000))].length).toBe(40);
  });
});
