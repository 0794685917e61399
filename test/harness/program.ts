// What a test starts as the program: its sources, or what `test/run.ts` has made of them (bundled-program.ts).

import { dirname, join } from 'node:path'
import process from 'node:process'
import { pathToFileURL } from 'node:url'
import { PROGRAM_FILES } from '../../src/kit/io/program/build.ts'

/** Names the entry point to test processes. Not PORTCULLIS_...: those are settings of the program. */
export const PROGRAM_VARIABLE = 'TESTED_PROGRAM'
const BUNDLED = process.env[PROGRAM_VARIABLE]

/** The entry point of the program, for Node. */
export const MAIN: string = BUNDLED ?? join(import.meta.dirname, '../../src/main.ts')

// Gateways inside a test process take their threads from the bundle, too: test/run.ts loads this file before each test file.
if (BUNDLED !== undefined) {
  Reflect.set(PROGRAM_FILES, 'threadEntry', pathToFileURL(join(dirname(BUNDLED), 'gateway-thread.mjs')))
}

/**
 * Getters of node:http that load undici. An `import` of it calls them all, and then each test process and each thread of a gateway in it
 * computes 30 ms longer at its start. No test takes them from node:http; the globals of these names stay.
 */
const LOADED_BY_IMPORT = ['WebSocket', 'CloseEvent', 'MessageEvent'] as const
for (const name of LOADED_BY_IMPORT) Reflect.deleteProperty(process.getBuiltinModule('node:http'), name)
