// Credentials for an S3 store, in the form of AWS's shared credentials file: the profile `default`.

export interface S3Credentials {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  /** That of temporary credentials; '' = they are not temporary. */
  readonly sessionToken: string
}

const SECTION = /^\[(.*)\]$/
const ENTRY = /^([a-z_]+)\s*=\s*([\x21-\x7e]+)$/i

/** Undefined = it has no access key. It quotes nothing. */
export function parseCredentials(text: string): S3Credentials | undefined {
  const found = new Map<string, string>()
  let isDefault = false
  for (const line of text.split('\n')) {
    const [, section] = SECTION.exec(line.trim()) ?? []
    if (section !== undefined) isDefault = section.trim() === 'default'
    const [, name = '', value = ''] = ENTRY.exec(line.trim()) ?? []
    if (isDefault && name !== '') found.set(name.toLowerCase(), value)
  }
  const accessKeyId = found.get('aws_access_key_id')
  const secretAccessKey = found.get('aws_secret_access_key')
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined
  return { accessKeyId, secretAccessKey, sessionToken: found.get('aws_session_token') ?? '' }
}
