// Each view's maker.
import type { App, Show } from "../app";
import type { View } from "../state";
import { alignersView } from "./aligners";
import { attributionView } from "./attribution";
import { circuitView } from "./circuit";
import { compareView } from "./compare";
import { contributionsView } from "./contributions";
import { headView } from "./head";
import { lensView } from "./lens";
import { liveView } from "./live";
import { retrievalView } from "./retrieval";
import { tableView } from "./table";
import { textView } from "./text";
import { timeView } from "./time";
import { walkView } from "./walk";

export const makers: { [view in View]: (app: App) => Show } = {
  live: liveView,
  text: textView,
  table: tableView,
  head: headView,
  attribution: attributionView,
  contributions: contributionsView,
  lens: lensView,
  circuit: circuitView,
  retrieval: retrievalView,
  aligners: alignersView,
  walk: walkView,
  compare: compareView,
  time: timeView,
};
