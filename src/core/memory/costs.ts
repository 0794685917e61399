// What things cost in resident memory, measured on a running gateway (docs/decisions/0048-memory-ceiling.md): objects of V8, Node and OpenSSL,
// buffers and the kernel's part of a socket together. Rounded up.

const KIB = 1024
const MIB = 1024 * KIB

/** The program, its code, and the main thread without objects. */
export const PROGRAM: number = 128 * MIB
/** A gateway thread that has served requests: code, compiled functions, tables of an empty configuration. */
export const THREAD: number = 40 * MIB
/** Where new objects of a thread live: two halves of 16 MiB, and as much for large ones. V8's flag --max-semi-space-size. */
export const YOUNG_GENERATION: number = 48 * MIB
/** A client's connection with TLS, idle: 80 to 90 KiB with its certificate, 70 to 80 KiB without one, 60 KiB before its first request. */
export const CONNECTION: number = 88 * KIB
/** The kernel's structures of a socket without data; a cgroup counts them. */
export const SOCKET: number = 4 * KIB
/** A request that is being served, with a head of up to 8 KiB. */
export const REQUEST: number = 24 * KIB
/** An open watch, on both sides, beside its connection. */
export const WATCH: number = 6 * KIB
/** A remembered refusal of a token: a hash, a time. */
export const REJECTED_TOKEN: number = 512
/** A remembered access review, with a reason of up to 1,024 characters. */
export const ACCESS_REVIEW: number = 1536
/** A user who is remembered for a budget. */
export const BUDGET: number = 512
/** A name with its sums in the tables of `portcullis top`. */
export const TOP_NAME: number = 256
/** A traced request, as text. */
export const TRACE: number = 8 * KIB
/** An event of a tap, as text. */
export const TAP_EVENT: number = 4 * KIB
