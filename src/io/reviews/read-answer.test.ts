import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_ANSWER_VALUES, parseAnswer } from './read-answer.ts'

test('an answer of as many values as are permitted is read, one of more is not', () => {
  const groups = new Array<string>(MAX_ANSWER_VALUES - 10).fill('a,b')
  assert.deepEqual(parseAnswer(JSON.stringify({ groups })), { groups })
  const more = JSON.stringify({ groups: new Array<string>(MAX_ANSWER_VALUES).fill('a') })
  assert.throws(() => parseAnswer(more), new RegExp(`more than ${MAX_ANSWER_VALUES} values`))
  assert.throws(() => parseAnswer('{'), SyntaxError)
})
