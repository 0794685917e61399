// Splits a JSON Web Token in compact form (RFC 7515 section 7.1): three base64url texts, accepted only in their canonical spelling.

export interface Jwt {
  readonly header: Readonly<Record<string, unknown>>
  readonly claims: Readonly<Record<string, unknown>>
  /** The signed bytes. */
  readonly signed: Buffer
  readonly signature: Buffer
}

/** Verifies nothing. undefined = not a token in this form. */
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

/** Accepts only the canonical encoding of the bytes; Buffer alone would accept many. */
function decodeBase64Url(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.length > 0 && bytes.toString('base64url') === text ? bytes : undefined
}
