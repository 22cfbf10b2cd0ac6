import { describe, expect, it } from "vitest";
import {
  circuitInWords,
  edgeInWords,
  figuresOfCircuit,
  nodeInWords,
  shownEdges,
  strongestEdges,
  tabbedEdges,
} from "../src/circuit";
import type { CircuitEdge } from "../src/given";
import { graphOf, nearestLine, nodeTo, pathOf, widthOf } from "../src/graph";
import { placeOfNode, titleOfNode } from "../src/node";
import type { Run } from "../src/page";
import { choiceOf, firstChoice, fragmentOf, viewsOf } from "../src/state";
import { heading } from "../src/words";
import { katzeCircuit } from "./given";
import { causal, several, translator } from "./pages";

const page = () => structuredClone(translator().page);
const run = page().runs[0] as Run;
const graph = () => graphOf(run, katzeCircuit);
const nodeOf = (name: string) =>
  graph()
    .rows.flatMap(({ nodes }) => nodes)
    .find((node) => node.name === name);

describe("the graph of a circuit", () => {
  it("has a row for each layer that takes part, in the order of a pass, from the foot", () => {
    expect(graph().rows.map(({ nodes }) => nodes.map(({ name }) => name))).toEqual([
      ["encoder.embeddings"],
      ["encoder.1.self_attention.2"],
      ["decoder.1.cross_attention.0"],
      ["decoder.1.feed_forward"],
      ["decoder.states"],
    ]);
    expect(graph().rows.map(({ label }) => label)).toEqual(["enc", "enc 1", "cross 1", "", ""]);
    const heights = graph().rows.map(({ y }) => y);
    expect(heights).toEqual([...heights].sort((a, b) => b - a));
    expect(Math.min(...heights)).toBeGreaterThan(0);
    expect(Math.max(...heights)).toBeLessThan(graph().height);
  });

  it("has heads in the column of their number and layers right of them", () => {
    expect(nodeOf("encoder.1.self_attention.2")).toMatchObject({ label: "2", isHead: true, x: 2.5 });
    expect(nodeOf("decoder.1.feed_forward")).toMatchObject({ label: "ff 1", isHead: false, x: 5 });
    expect(nodeOf("decoder.states")).toMatchObject({ label: "states", title: "The last states" });
    expect(graph().columns).toBe(6);
  });

  it("has a line to each reader that writes into the circuit", () => {
    const lines = graph().lines.filter(({ edge }) => edge.input === "queries");
    expect(lines.map(({ to }) => to.name)).toEqual(["encoder.1.self_attention.2"]);
    expect(graph().lines.map(({ number }) => number)).toEqual([0, 1, 2, 3, 4, 5]);
    for (const { from, to, points } of graph().lines) {
      expect(from.y, `${from.name} stands below ${to.name}`).toBeGreaterThan(to.y);
      expect(points[0].y).toBeGreaterThan(points[3].y);
    }
  });

  it("bends lines to queries and keys to the left, others to the right, where they pass rows", () => {
    const [values] = graph().lines.filter(({ edge }) => edge.input === "values");
    const [a, b] = values?.points ?? [];
    expect((b?.x ?? 0) - (a?.x ?? 0)).toBeCloseTo(0.4);
    expect(pathOf(graph().lines[0] as never)).toMatch(/^M[\d.]+ [\d.]+C[\d. -]+$/);
  });

  it("makes strong edges thick", () => {
    const [first, , third] = strongestEdges(katzeCircuit) as [CircuitEdge, CircuitEdge, CircuitEdge];
    expect(widthOf(first, 0.5)).toBe(6);
    expect(widthOf(third, 0.5)).toBe(2.3);
    expect(widthOf(third, 0)).toBe(1.6);
  });

  it("finds the line under the pointer, and none far from all", () => {
    const { lines, columns, height } = graph();
    for (const line of lines) {
      const [, , , end] = line.points;
      const [start] = line.points;
      const near = nearestLine([line], { x: (start.x + end.x) / 2, y: (start.y + end.y) / 2 }, 40, 60);
      expect(near?.number).toBe(line.number);
    }
    expect(nearestLine(lines, { x: columns, y: height }, 40, 14)).toBeNull();
    const end = lines[0]?.points[3] ?? { x: 0, y: 0 };
    expect(nearestLine(lines.slice(0, 2), end, 40, 14)?.number).toBe(0);
  });

  it("is walked through by arrow keys", () => {
    const to = (name: string, key: string) => nodeTo(graph(), name, key)?.name;
    expect(to("encoder.embeddings", "ArrowUp")).toBe("encoder.1.self_attention.2");
    expect(to("decoder.1.feed_forward", "ArrowDown")).toBe("decoder.1.cross_attention.0");
    expect(to("encoder.embeddings", "ArrowDown")).toBeUndefined();
    expect(to("encoder.embeddings", "End")).toBe("decoder.states");
    expect(to("decoder.states", "Home")).toBe("encoder.embeddings");
    expect(to("encoder.embeddings", "ArrowLeft")).toBeUndefined();
    expect(to("nobody", "ArrowUp")).toBeUndefined();
    expect(to("encoder.embeddings", "a")).toBeUndefined();
  });
});

describe("a circuit in words", () => {
  it("names nodes as people read them, and of one stack without its name", () => {
    expect(titleOfNode(run, "encoder.embeddings")).toBe("The embeddings of the encoder");
    expect(titleOfNode(run, "decoder.1.feed_forward")).toBe("Feed-forward layer 1 of the decoder");
    expect(titleOfNode(causal().page.runs[0] as Run, "decoder.1.feed_forward")).toBe("Feed-forward layer 1");
    expect(titleOfNode(run, "<b>")).toBe("<b>");
    expect(placeOfNode("decoder.x.feed_forward")).toBeNull();
  });

  it("says an edge's score and, where it was measured, its effect", () => {
    const [first, second, third, , , last] = strongestEdges(katzeCircuit) as CircuitEdge[];
    expect(edgeInWords(run, first as CircuitEdge)).toBe(
      "Cross-attention 1, head 0 → the last states: score 0.500, effect 0.400 ± 0.050",
    );
    expect(edgeInWords(run, second as CircuitEdge)).toBe(
      "The embeddings of the encoder → values of Cross-attention 1, head 0: score 0.250",
    );
    expect(edgeInWords(run, third as CircuitEdge)).toBe(
      "Encoder 1, head 2 → keys of Cross-attention 1, head 0: score −0.125; against the answer",
    );
    expect(edgeInWords(run, last as CircuitEdge)).toContain("queries of Encoder 1, heads 2, 3 and 1: score 0.010");
  });

  it("says what leads into a node and out of it, of those that are shown", () => {
    const name = "decoder.1.cross_attention.0";
    expect(nodeInWords(run, katzeCircuit, name, 6)).toMatch(
      /^Cross-attention 1, head 0: 2 edges in, 2 out\. The stron/,
    );
    expect(nodeInWords(run, katzeCircuit, name, 1)).toMatch(/^Cross-attention 1, head 0: 1 out\. The strongest: /);
    expect(nodeInWords(run, katzeCircuit, "encoder.0.self_attention.0", 6)).toContain("has none of the edges");
  });

  it("has its figures", () => {
    expect(circuitInWords(katzeCircuit)).toBe("6 of 12,345 edges keep 88 % of the decision");
    expect(circuitInWords(null)).toBe("");
    const lines = figuresOfCircuit(katzeCircuit).map(({ title, value }) => `${title}: ${value}`);
    expect(lines).toEqual([
      "Faithfulness: 0.880 ± 0.021",
      "Elsewhere: 0.790 ± 0.100",
      "Completeness: 1.001",
      "Random circuits: 0.000",
      "Decision: 18.4 and −18.9",
    ]);
    expect(figuresOfCircuit(katzeCircuit)[3]?.about).toBe(
      "the mean of 1,000 with as many edges, on 4 pairs; the best keeps 0.197, and 2 keep as much as the circuit",
    );
    const alone = { ...katzeCircuit, faithfulness_elsewhere: null, random: { ...katzeCircuit.random, count: 0 } };
    expect(figuresOfCircuit(alone)).toHaveLength(3);
  });

  it("is copied with tabs", () => {
    const lines = tabbedEdges(strongestEdges(katzeCircuit)).split("\n");
    expect(lines[0]).toBe("from\tto\tscore\teffect\thalf of its interval\tinput");
    expect(lines[1]).toBe("decoder.1.cross_attention.0\tdecoder.states\t0.5\t0.4\t0.05\tstates");
    expect(lines[2]).toMatch(/\t0\.25\t\t\tvalues$/);
  });

  it("has a view where a page has any, and a heading; the strongest edges are in the link", () => {
    const made = page();
    expect(viewsOf(made)).not.toContain("circuit");
    (made.runs[0] as Run).circuit = katzeCircuit;
    expect(viewsOf(made)).toContain("circuit");
    const choice = { ...firstChoice(made), view: "circuit" as const, edges: 3, cell: "edge:2" };
    expect(heading(made, choice)).toEqual({
      place: "Circuit",
      words: "6 of 12,345 edges keep 88 % of the decision",
    });
    expect(choiceOf(fragmentOf(choice), firstChoice(made))).toEqual(choice);
    expect(shownEdges(katzeCircuit, 0)).toBe(6);
    expect(shownEdges(katzeCircuit, 3)).toBe(3);
    expect(shownEdges(katzeCircuit, 99)).toBe(6);
    const edges = Array.from({ length: 300 }, () => katzeCircuit.edges[0] as CircuitEdge);
    expect(shownEdges({ ...katzeCircuit, edges }, 0)).toBe(100);
    expect(shownEdges({ ...katzeCircuit, edges }, 300)).toBe(300);
    const two = structuredClone(several("compare", 2).page);
    (two.runs[0] as Run).circuit = katzeCircuit;
    expect(heading(two, { ...choice, run: 1 })).toEqual({ place: "Circuit", words: "" });
  });
});
