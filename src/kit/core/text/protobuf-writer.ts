// Writes the protobuf wire format (protobuf.dev/programming-guides/encoding), as far as OpenAPI v2 and the metadata of objects need it. Defaults (0,
// false, '') are omitted, as in proto3, unless a method says otherwise.

const VARINT = 0
const FIXED64 = 1
const LENGTH_DELIMITED = 2

/** One message; its fields in the order of the calls. */
export class ProtobufWriter {
  readonly #chunks: Buffer[] = []

  bool(field: number, value: boolean): void {
    if (value) this.int64(field, 1)
  }

  /** @param value a whole number from 0 to Number.MAX_SAFE_INTEGER */
  int64(field: number, value: number): void {
    if (value !== 0) this.#chunks.push(varint(field * 8 + VARINT), varint(value))
  }

  /** Also 0, as proto2 writes what it requires. @param value any int64: a whole number, or a bigint */
  number(field: number, value: number | bigint): void {
    this.#chunks.push(varint(field * 8 + VARINT), varint(value))
  }

  double(field: number, value: number): void {
    if (value === 0) return
    const bytes = Buffer.alloc(8)
    bytes.writeDoubleLE(value)
    this.#chunks.push(varint(field * 8 + FIXED64), bytes)
  }

  string(field: number, value: string): void {
    if (value !== '') this.bytes(field, Buffer.from(value))
  }

  /** For a repeated field: '' is an element. */
  element(field: number, value: string): void {
    this.bytes(field, Buffer.from(value))
  }

  /** Bytes, or an embedded message. */
  bytes(field: number, value: Buffer): void {
    this.#chunks.push(varint(field * 8 + LENGTH_DELIMITED), varint(value.length), value)
  }

  finish(): Buffer {
    return Buffer.concat(this.#chunks)
  }
}

/** The tag and length in front of a string, bytes or an embedded message. */
export function lengthPrefix(field: number, length: number): Buffer {
  return Buffer.concat([varint(field * 8 + LENGTH_DELIMITED), varint(length)])
}

/** Its size, for a length below 2^53: sizes of nested parts must be known before the first is written. */
export function lengthPrefixBytes(field: number, length: number): number {
  return varintBytes(field * 8 + LENGTH_DELIMITED) + varintBytes(length)
}

function varintBytes(value: number): number {
  let bytes = 1
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) bytes++
  return bytes
}

/** Seven bits per byte, lowest first; the high bit marks continuation. */
function varint(value: number | bigint): Buffer {
  if (typeof value === 'bigint' || value < 0) return longVarint(BigInt.asUintN(64, BigInt(value)))
  const bytes: number[] = []
  let rest = value
  while (rest >= 128) {
    bytes.push((rest % 128) + 128)
    rest = Math.floor(rest / 128)
  }
  bytes.push(rest)
  return Buffer.from(bytes)
}

function longVarint(value: bigint): Buffer {
  const bytes: number[] = []
  let rest = value
  while (rest >= 128n) {
    bytes.push(Number(rest % 128n) + 128)
    rest /= 128n
  }
  bytes.push(Number(rest))
  return Buffer.from(bytes)
}
