// Number formats of responses.

/** Rounded to three significant digits, to keep responses small. */
export function short(value: number): number {
  return Number.isInteger(value) && value < 1000 ? value : Number(value.toPrecision(3))
}

/** 0 to 1. Capped: requests that end in a later step than they began in may outnumber those of a step. */
export function ratio(part: number, all: number): number {
  return all <= 0 ? 0 : short(Math.min(1, part / all))
}
