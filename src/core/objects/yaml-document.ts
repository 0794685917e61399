// YAML text -> the nodes of its first document, read no further than to the first error. The library's own parseDocument goes
// on behind an error and keeps one more for each token, with a stack: a request of 3 MB of `}` cost a minute and a half.

import { Composer, type CST, Lexer, type LineCounter, type ParsedNode, Parser } from 'yaml'
import { MAX_DEPTH } from './json-text.ts'

/**
 * undefined or null when there is nothing in it. What stands behind the first document is not read, as in kube-apiserver.
 * @param lines learns where lines begin
 * @throws {SyntaxError} with a message that begins with `yaml: `
 */
export function composeFirstDocument(text: string, lines: LineCounter): ParsedNode | null | undefined {
  const errors = new FirstError(lines)
  const composer = createComposer(errors)
  let begun = false
  for (const token of tokensOf(text, lines)) {
    refuseBadToken(token, begun, errors)
    begun ||= token.type === 'document'
    for (const document of composer.next(token)) return document.contents
  }
  for (const document of composer.end(true, text.length)) return document.contents
  return undefined
}

/** Collections that may be open at a time. Their document and a scalar are open with them. */
const MAX_OPEN = MAX_DEPTH + 2

/**
 * As the library's own Parser.parse, but no deeper than whoever reads the nodes goes: a token is only handed out when all
 * that is in it has been read, and a text of nothing but brackets would be read to its end.
 */
function* tokensOf(text: string, lines: LineCounter): Generator<CST.Token, void> {
  const parser = new Parser(lines.addNewLine)
  // The library's types hide it; strict-decode.test.ts fails when it is no longer there.
  const open: unknown = Reflect.get(parser, 'stack')
  if (!Array.isArray(open)) throw new Error('the YAML library does not tell how deep it is')
  lines.addNewLine(0)
  for (const lexeme of new Lexer().lex(text)) {
    yield* parser.next(lexeme)
    if (open.length > MAX_OPEN) throw new SyntaxError('yaml: exceeded max depth')
  }
  yield* parser.end()
}

/** Ends the reading of a text: thrown again by whoever caught it, it stays the same error. */
class FirstError {
  readonly #lines: LineCounter
  #first: SyntaxError | undefined

  constructor(lines: LineCounter) {
    this.#lines = lines
  }

  /** @returns never: always throws */
  raise(offset: number, message: string): never {
    this.#first ??= new SyntaxError(`yaml: line ${this.#lines.linePos(offset).line}: ${message}`)
    throw this.#first
  }
}

/** A composer that throws where the library would note an error and go on. */
function createComposer(errors: FirstError): Composer<ParsedNode, false> {
  const composer = new Composer<ParsedNode, false>({
    version: '1.1',
    // Every scalar is text; what it means is decided by yaml-text.ts.
    schema: 'failsafe',
    resolveKnownTags: false,
    merge: false,
    // Quadratic in the library; who reads the nodes looks for keys that are there twice.
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: 'silent',
  })
  // The library has no option for it; strict-decode.test.ts fails when it no longer calls this.
  const replaced = Reflect.set(
    composer,
    'onError',
    (at: Position, _code: string, message: string, warning?: boolean) => {
      if (warning !== true) errors.raise(offsetOf(at), message)
    },
  )
  if (!replaced) throw new Error('the YAML library cannot be stopped at an error')
  return composer
}

/** Where the library says that an error is. */
type Position = number | readonly [number, number] | { readonly offset: number }

function offsetOf(at: Position): number {
  if (typeof at === 'number') return at
  return 'offset' in at ? at.offset : at[0]
}

/** Of tokens outside of a document the composer notes errors without asking. */
function refuseBadToken(token: CST.Token, begun: boolean, errors: FirstError): void {
  if (token.type === 'error') {
    const shown = token.source === '' ? '' : `: ${JSON.stringify(token.source.slice(0, MAX_SHOWN))}`
    errors.raise(token.offset, `${token.message}${shown}`)
  }
  if (token.type === 'doc-end' && !begun) errors.raise(token.offset, 'Unexpected doc-end without preceding document')
}

/** Of a token that does not belong where it is, as much as an answer repeats. */
const MAX_SHOWN = 64
