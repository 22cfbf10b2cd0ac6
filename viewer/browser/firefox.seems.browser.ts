import { kind } from "./firefox";
import { seems, tests_in } from "./each";

tests_in(kind, seems);
