// The library as WebAssembly (web/README.md): models are opened and asked by JSON, here or in a worker.

/** What emscripten's multihead.js gives, as far as it is used. */
interface Module {
  HEAPU8: Uint8Array;
  _malloc(bytes: number): number;
  _free(at: number): void;
  _mh_call(request: number, bytes: number): number;
  _mh_answer_bytes(): number;
  FS: {
    mkdirTree(path: string): void;
    writeFile(path: string, bytes: Uint8Array): void;
    unlink(path: string): void;
  };
}

/** Makes the module of the bytes of multihead.wasm: the function that multihead.js defines. */
export type ModuleFactory = (given: { wasmBinary: Uint8Array }) => Promise<Module>;

/** A request that the library refused: its message says what was wrong, and the remedy. */
export class Refused extends Error {}

/** What a call changes inside the model while it runs. */
export interface Changes {
  mute?: string[];
  gate?: { heads: string; by: number }[];
  replace?: { heads: string; rule: "uniform" | "previous" | "first" }[];
}

export interface About {
  type: string;
  kind: "translator" | "causal" | "encoder";
  predicts: boolean;
  parameters: number;
  longest: number;
  attentions: { name: string; layer: number; heads: number }[];
  remarks: string[];
}

/** A word that may stand in a place. */
export interface FilledWord {
  id: number;
  word: string;
  probability: number;
}

/** The answers of the calls by their names. */
export interface Answers {
  about: About;
  close: Record<string, never>;
  embed: { vectors: number[][]; similarities: number[][]; remarks: string[] };
  fill: { masks: FilledWord[][][]; remarks: string[] };
  generate: { texts: string[]; remarks: string[] };
  importance: { score: number; heads: { head: string; importance: number }[]; remarks: string[] };
  next: { words: FilledWord[][]; remarks: string[] };
  observe: {
    source: Tokens;
    target: Tokens;
    predicted: Tokens;
    translation: string;
    values: Record<string, number[][]>;
    remarks: string[];
  };
  page: { data: string; title: string; remarks: string[] };
  score: { log_probabilities: number[][]; labels: string[][]; remarks: string[] };
  tokens: { ids: number[]; labels: string[]; offsets: [number, number][] };
  translate: {
    translations: { text: string; score: number; log_probability: number }[][];
    remarks: string[];
  };
}

export interface Tokens {
  ids: number[];
  tokens: string[];
  labels: string[];
  offsets: [number, number][];
}

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class Library {
  private constructor(private readonly module: Module) {}

  static async load(factory: ModuleFactory, wasm: Uint8Array): Promise<Library> {
    return new Library(await factory({ wasmBinary: wasm }));
  }

  /** Opens a model of files in memory, by their names in its folder; a single NAME.gguf is a model, too. */
  open(name: string, files: Map<string, Uint8Array>, options: { precision?: string } = {}): { model: number } & About {
    const { FS } = this.module;
    const folder = `/models/${name}`;
    for (const [file, bytes] of files) {
      const path = `${folder}/${file}`;
      FS.mkdirTree(path.slice(0, path.lastIndexOf("/")));
      FS.writeFile(path, bytes);
    }
    const [only] = files.keys();
    const path = files.size === 1 && only?.endsWith(".gguf") ? `${folder}/${only}` : folder;
    try {
      return this.ask({ call: "open", given: { path, ...options } }) as { model: number } & About;
    } finally {
      // The model has what it needs of them.
      for (const file of files.keys()) FS.unlink(`${folder}/${file}`);
    }
  }

  /** How large its memory has grown. */
  bytes(): number {
    return this.module.HEAPU8.length;
  }

  call<Name extends keyof Answers>(call: Name, model: number, given: object = {}): Answers[Name] {
    return this.ask({ call, model, given }) as Answers[Name];
  }

  private ask(request: object): unknown {
    const bytes = encoder.encode(JSON.stringify(request));
    const at = this.module._malloc(bytes.length);
    try {
      this.module.HEAPU8.set(bytes, at);
      const answer = this.module._mh_call(at, bytes.length);
      const end = answer + this.module._mh_answer_bytes();
      const found: unknown = JSON.parse(decoder.decode(this.module.HEAPU8.subarray(answer, end)));
      if (isRefusal(found)) throw new Refused(found.error);
      return found;
    } finally {
      this.module._free(at);
    }
  }
}

function isRefusal(answer: unknown): answer is { error: string } {
  return typeof answer === "object" && answer !== null && "error" in answer;
}
