// What commands that go on until somebody ends them know of their terminal.

/** No terminal, and nobody who could end a command. */
export const NO_TERMINAL: Terminal = { columns: () => undefined, interrupted: () => new AbortController().signal }

export interface Terminal {
  /** Columns of standard output; undefined = it is not a terminal. Read for each line: windows change. */
  columns(): number | undefined
  /** Aborts at the first Ctrl-C (SIGINT) or SIGTERM from now on; a second one ends the process as usual. */
  interrupted(): AbortSignal
}
