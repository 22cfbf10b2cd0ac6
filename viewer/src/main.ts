import { SCHEMA } from "./page";

document.title = `multihead ${SCHEMA}`;
