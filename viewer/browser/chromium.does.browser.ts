import { kind } from "./chromium";
import { does, tests_in } from "./each";

tests_in(kind, does);
