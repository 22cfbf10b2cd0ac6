// Opens the page to play with that the document names.
import { fields, listOf, record, text } from "../reader";
import { Frame, type Text } from "./frame";
import { diversity } from "./pages/diversity";
import { oneProduct } from "./pages/oneproduct";
import { splitOrProject } from "./pages/splitorproject";
import { twoMatrices } from "./pages/twomatrices";
import type { Play } from "./play";

const plays: readonly Play[] = [splitOrProject, diversity, twoMatrices, oneProduct];
const read = record<Text & { name: string }>({ name: text, question: text, answer: listOf(text) });

const root = document.getElementById("app") as HTMLElement;
const said = read(fields(JSON.parse(document.getElementById("play")?.textContent ?? "{}"), "play"), "play");
const play = plays.find(({ name }) => name === said.name);
if (play) root.replaceChildren(new Frame(play, said, document.getElementById("worker")?.textContent ?? "").element);
else root.textContent = `This page has no ${said.name}.`;
