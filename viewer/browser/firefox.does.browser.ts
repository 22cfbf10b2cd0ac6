import { kind } from "./firefox";
import { does, tests_in } from "./each";

tests_in(kind, does);
