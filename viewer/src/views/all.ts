// Each view's maker.
import type { App, Show } from "../app";
import { h } from "../dom";
import type { View } from "../state";
import { headView } from "./head";
import { tableView } from "./table";
import { textView } from "./text";
import { walkView } from "./walk";

const later = (): Show => ({ element: h("div", { class: "view" }), update: () => {} });

export const makers: { [view in View]: (app: App) => Show } = { text: textView, table: tableView, head: headView, walk: walkView, compare: later, time: later };
