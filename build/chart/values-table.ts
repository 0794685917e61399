// What a value of the chart is: its default, what it may be, and what it means. values.yaml, values.schema.json and the table of the chart's
// README are made of one tree of these.

/** JSON Schema, as far as the chart uses it. */
export type ValueSchema = Readonly<Record<string, unknown>>

export interface Value {
  /** undefined = values.yaml has only a comment, and the template decides. */
  readonly fallback: unknown
  readonly schema: ValueSchema
  /** One sentence, in Markdown. */
  readonly meaning: string
}

export interface Group {
  readonly meaning: string
  readonly members: Readonly<Record<string, Value | Group>>
  /** Further keywords of the schema, for what depends on several values. */
  readonly schema?: ValueSchema
}

export function isGroup(entry: Value | Group): entry is Group {
  return 'members' in entry
}

export function group(meaning: string, members: Group['members'], schema?: ValueSchema): Group {
  return { meaning, members, ...(schema !== undefined && { schema }) }
}

export function text(fallback: string, meaning: string, schema: ValueSchema = {}): Value {
  return { fallback, meaning, schema: { type: 'string', ...schema } }
}

export function choice(fallback: string, options: readonly string[], meaning: string): Value {
  return { fallback, meaning, schema: { type: 'string', enum: options } }
}

export function flag(fallback: boolean, meaning: string): Value {
  return { fallback, meaning, schema: { type: 'boolean' } }
}

export function integer(fallback: number | undefined, min: number, max: number, meaning: string): Value {
  return { fallback, meaning, schema: { type: 'integer', minimum: min, maximum: max } }
}

export function port(fallback: number, meaning: string): Value {
  return integer(fallback, 1, 65_535, meaning)
}

export function texts(meaning: string, items: ValueSchema = {}): Value {
  return { fallback: [], meaning, schema: { type: 'array', items: { type: 'string', minLength: 1, ...items } } }
}

/** Names and texts: labels, annotations. */
export function textMap(meaning: string, fallback: Readonly<Record<string, string>> = {}): Value {
  return { fallback, meaning, schema: { type: 'object', additionalProperties: { type: 'string' } } }
}

/** An object of the Kubernetes API, which kube-apiserver checks. */
export function kubeObject(meaning: string, fallback: object = {}): Value {
  return { fallback, meaning, schema: { type: 'object' } }
}

export function kubeObjects(meaning: string): Value {
  return { fallback: [], meaning, schema: { type: 'array', items: { type: 'object' } } }
}

/** A key of a Secret in the release's namespace. */
export function secretKey(meaning: string, key: string): Group {
  return group(meaning, {
    name: text('', 'name of the Secret; empty: none'),
    key: text(key, 'key in it', { minLength: 1 }),
  })
}
