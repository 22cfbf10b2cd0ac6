import { kind } from "./chromium";
import { seems, tests_in } from "./each";

tests_in(kind, seems);
