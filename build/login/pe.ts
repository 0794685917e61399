// Programs of Windows (PE format): their Authenticode signature.

/** Where a file names its header; in the header: the optional header, and there the entry of the certificate table. */
const HEADER_AT = 60
const OPTIONAL_HEADER = 24
const CERTIFICATES_OF_64_BITS = 144

/**
 * The program without its signature, which a script in it would make invalid: Windows and virus scanners think less of that than of none.
 * @param program of 64 bits
 */
export function withoutCertificates(program: Buffer): Buffer {
  const entry = program.readUInt32LE(HEADER_AT) + OPTIONAL_HEADER + CERTIFICATES_OF_64_BITS
  const [at, bytes] = [program.readUInt32LE(entry), program.readUInt32LE(entry + 4)]
  if (bytes === 0) return program
  if (at + bytes !== program.length) throw new Error('the program for Windows does not end with its signature')
  const unsigned = Buffer.from(program.subarray(0, at))
  unsigned.fill(0, entry, entry + 8)
  return unsigned
}
