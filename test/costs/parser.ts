// A parser or check of what others send, as the tests of costs and the search for slow inputs see it: what it reads, how much of it
// is permitted, and the inputs that are unkind to it.

import type { Shape } from './shapes.ts'

export interface Parser {
  readonly name: string
  /** Characters that are permitted; where the limit is not the parser's own and small, more, so that a square can be seen. */
  readonly limit: number
  readonly shapes: Readonly<Record<string, Shape>>
  /** What the search for slow inputs puts into its inputs, beside pieces of the shapes. */
  readonly tokens: readonly string[]
  /** Heap that the result may hold for each character of the input, in bytes. Undefined: nothing is kept. */
  readonly heap: number | undefined
  /** Whether members go into objects and maps, as many as the input has. */
  readonly fillsMaps: boolean
  /** Prepares what is not to be measured, and returns what is. Throws as the parser does. */
  open(text: string): () => unknown
}

interface Definition<T> {
  readonly name: string
  readonly limit: number
  readonly shapes: Readonly<Record<string, Shape>>
  readonly tokens?: readonly string[]
  readonly heap?: number
  readonly fillsMaps?: boolean
  /** What the text becomes before the measurement begins. */
  readonly prepare: (text: string) => T
  /** May refuse by an exception, or by a value. */
  readonly read: (input: T) => unknown
}

export function parser(definition: Omit<Definition<string>, 'prepare'>): Parser {
  return parserOf<string>({ ...definition, prepare: (text) => text })
}

/** One that does not read text: bytes (a character of the shapes is one), or an object. */
export function parserOf<T>({
  name,
  limit,
  shapes,
  tokens = [],
  heap,
  fillsMaps = false,
  prepare,
  read,
}: Definition<T>): Parser {
  return {
    name,
    limit,
    shapes,
    tokens,
    heap,
    fillsMaps,
    open(text) {
      const input = prepare(text)
      return () => {
        try {
          return read(input)
        } catch (error) {
          // Refused is fine; a bug, or a stack that overflows, is not.
          if (!(error instanceof Error) || error instanceof RangeError || error instanceof TypeError) throw error
          return undefined
        }
      }
    },
  }
}

export const bytes = (text: string): Buffer => Buffer.from(text, 'latin1')
