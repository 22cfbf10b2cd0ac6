import { kind } from "./firefox";
import { all_tests_in } from "./each";

all_tests_in(kind);
