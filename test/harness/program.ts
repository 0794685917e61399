// What a test starts as the program: its sources, or what `test/run.ts` has made of them (bundled-program.ts).

import { join } from 'node:path'
import process from 'node:process'

/** Names the entry point to test processes. Not PORTCULLIS_...: those are settings of the program. */
export const PROGRAM_VARIABLE = 'TESTED_PROGRAM'

/** The entry point of the program, for Node. */
export const MAIN: string = process.env[PROGRAM_VARIABLE] ?? join(import.meta.dirname, '../../src/main.ts')
