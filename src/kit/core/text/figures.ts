// Numbers as answers have them.

/** Three significant figures: answers stay small. */
export function short(value: number): number {
  return Number.isInteger(value) && value < 1000 ? value : Number(value.toPrecision(3))
}

/** 0 to 1. Requests that end in another step than they began may be more than there were in one. */
export function ratio(part: number, all: number): number {
  return all <= 0 ? 0 : short(Math.min(1, part / all))
}
