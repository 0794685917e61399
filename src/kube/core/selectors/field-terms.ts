// Parses field selectors, `?fieldSelector=`: the parser of apimachinery/pkg/fields/selector.go, with its messages. Which fields a kind has is for
// the caller to know.

/** A requirement on one field. */
export interface FieldTerm {
  readonly field: string
  readonly value: string
  /** The field has another value. */
  readonly negated: boolean
}

/**
 * All must match; none = every object matches.
 * @throws {SyntaxError} with kube-apiserver's message
 */
export function parseFieldTerms(text: string): readonly FieldTerm[] {
  const terms: FieldTerm[] = []
  for (const part of splitTerms(text)) {
    if (part === '') continue
    const term = parseTerm(part)
    if (term === undefined) throw new SyntaxError(`invalid selector: '${text}'; can't understand '${part}'`)
    // `=` and `!=` alone say nothing: Go's parser drops them (hasTerm.Transform).
    if (term.field !== '' || term.value !== '') terms.push(term)
  }
  return terms
}

function parseTerm(part: string): FieldTerm | undefined {
  for (let at = 0; at < part.length; at++) {
    const operator = operatorAt(part, at)
    if (operator === '') continue
    const value = unescapeValue(part.slice(at + operator.length))
    return { field: part.slice(0, at), value, negated: operator === '!=' }
  }
  return undefined
}

function operatorAt(part: string, at: number): '' | '!=' | '==' | '=' {
  if (part.startsWith('!=', at)) return '!='
  if (part.startsWith('==', at)) return '=='
  return part.charAt(at) === '=' ? '=' : ''
}

/** Splits at unescaped commas. */
function splitTerms(selector: string): string[] {
  const terms: string[] = []
  let start = 0
  for (let at = 0; at < selector.length; at++) {
    const character = selector.charAt(at)
    if (character === '\\') at++
    else if (character === ',') {
      terms.push(selector.slice(start, at))
      start = at + 1
    }
  }
  terms.push(selector.slice(start))
  return terms
}

/** Backslash escapes of `\`, `,` and `=`. @throws {SyntaxError} for a lone backslash or any other escape */
function unescapeValue(value: string): string {
  let plain = ''
  for (let at = 0; at < value.length; at++) {
    let character = value.charAt(at)
    if (character === ',' || character === '=') {
      throw new SyntaxError(`invalid field selector: unescaped character in value: ${character.charCodeAt(0)}`)
    }
    if (character === '\\') {
      character = value.charAt(++at)
      if (character !== '\\' && character !== ',' && character !== '=') {
        throw new SyntaxError(`invalid field selector: invalid escape sequence: \\${character}`)
      }
    }
    plain += character
  }
  return plain
}
