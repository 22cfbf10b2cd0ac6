// Opens the page to play with that the document names.
import { fields, listOf, record, text } from "../reader";
import { liveElements } from "../live/session";
import { Frame, type Text } from "./frame";
import { diversity } from "./pages/diversity";
import { oneProduct } from "./pages/oneproduct";
import { splitOrProject } from "./pages/splitorproject";
import { twoMatrices } from "./pages/twomatrices";
import { uniqueHeads } from "./pages/uniqueheads";
import type { Play } from "./play";

const plays: readonly Play[] = [splitOrProject, diversity, twoMatrices, uniqueHeads, oneProduct];
const read = record<Text & { name: string }>({ name: text, question: text, answer: listOf(text) });

const root = document.getElementById("app") as HTMLElement;
const said = read(fields(JSON.parse(document.getElementById("play")?.textContent ?? "{}"), "play"), "play");
const play = plays.find(({ name }) => name === said.name);
if (play) {
  const script = document.getElementById("worker")?.textContent ?? "";
  root.replaceChildren(new Frame(play, said, script, liveElements(document)).element);
} else root.textContent = `This page has no ${said.name}.`;
