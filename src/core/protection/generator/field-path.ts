// Paths to a field of an object, as in `.spec.strategy.rollingUpdate.maxUnavailable` or `.spec['a.b']`: the part of JSONPath
// that leads to one value.

export type FieldPath = readonly string[]

const STEP = /\.([A-Za-z_][\w-]*)|\['([^']+)'\]/y

/** undefined = it is not a path. */
export function parseFieldPath(text: string): FieldPath | undefined {
  const steps: string[] = []
  STEP.lastIndex = 0
  while (STEP.lastIndex < text.length) {
    const match = STEP.exec(text)
    if (match === null) return undefined
    steps.push(match[1] ?? match[2] ?? '')
  }
  return steps.length === 0 ? undefined : steps
}

/** The value, or undefined where something on the way is missing or null. */
export function fieldAt(object: unknown, path: FieldPath): unknown {
  let value = object
  for (const step of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined
    value = Reflect.get(value, step)
  }
  return value ?? undefined
}

export function pathText(path: FieldPath): string {
  return path.map((step) => (/^[A-Za-z_][\w-]*$/.test(step) ? `.${step}` : `['${step}']`)).join('')
}
