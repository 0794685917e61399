// The parts of a JSON Web Token in the compact form (RFC 7515 section 7.1): three texts in base64url, in the one spelling that counts.

export interface Jwt {
  readonly header: Readonly<Record<string, unknown>>
  readonly claims: Readonly<Record<string, unknown>>
  /** What the signature is of. */
  readonly signed: Buffer
  readonly signature: Buffer
}

/** Nothing is verified. undefined = it is not a token in this form. */
export function readJwt(token: string): Jwt | undefined {
  const parts = token.split('.', 4)
  const [first = '', second = '', third = ''] = parts
  if (parts.length !== 3) return undefined
  const header = decodePart(first)
  const claims = header && decodePart(second)
  const signature = claims && decodeBase64Url(third)
  if (header === undefined || claims === undefined || signature === undefined) return undefined
  return { header, claims, signed: Buffer.from(`${first}.${second}`), signature }
}

export function encodePart(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** undefined = not a JSON object. */
function decodePart(part: string): Record<string, unknown> | undefined {
  const bytes = decodeBase64Url(part)
  if (bytes === undefined) return undefined
  try {
    const value: unknown = JSON.parse(bytes.toString())
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    return value as Record<string, unknown>
  } catch {
    return undefined
  }
}

/** Only the one way to write the bytes counts; Buffer alone would take many. */
function decodeBase64Url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.length > 0 && bytes.toString('base64url') === text ? bytes : undefined
}
