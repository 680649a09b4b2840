import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import { GridCellSchema, WorkflowSchema, WorkflowTimerSchema } from '../gen/signalbox/v1/workflow_pb'
import { cellText, diffLines, noNextTime, timerCount, unpublished, workflowAlerts } from './workflow'

const workflow = (given: MessageInitShape<typeof WorkflowSchema> = {}) =>
  create(WorkflowSchema, { state: 'published', latestVersion: '1.0.0', ...given })

describe('the alerts of a workflow', () => {
  it('are none while it starts runs', () => {
    expect(workflowAlerts(workflow())).toEqual([])
  })

  it('say that it is paused, and why', () => {
    expect(workflowAlerts(workflow({ state: 'paused', pauseReason: 'a bug', latestVersion: '' }))).toMatchObject([
      { id: 'paused', tone: 'amber', detail: 'a bug' },
    ])
  })

  it('say that it has a draft alone, which cannot be stopped', () => {
    expect(workflowAlerts(workflow({ state: 'draft', latestVersion: '' }))).toMatchObject([
      { id: 'draft', tone: 'blue' },
    ])
    expect(unpublished(workflow({ latestVersion: '' }))).toBe('Nothing is published.')
    expect(unpublished(workflow())).toBeUndefined()
  })
})

describe('the clock of a workflow', () => {
  it('has numbers that are unknown while its schedule cannot be read', () => {
    expect(timerCount(create(WorkflowTimerSchema, { fired: 1200n }), 1200n)).toBe('1,200')
    expect(timerCount(create(WorkflowTimerSchema, { unknownBecause: 'Temporal is down' }), 0n)).toBe('unknown')
  })

  it('has no next time while the workflow is paused', () => {
    expect(noNextTime(workflow({ state: 'paused' }))).toBe('none while the workflow is paused')
    expect(noNextTime(workflow())).toBe('unknown')
    expect(noNextTime(undefined)).toBe('unknown')
  })
})

describe('what a task did in a run', () => {
  it('is its status, steps, attempts and duration', () => {
    expect(cellText(create(GridCellSchema, { status: 'failed', count: 1n, duration: { seconds: 3n } }))).toBe(
      'Failed, 1 step, 3.0 s',
    )
    expect(cellText(create(GridCellSchema, { status: 'completed', count: 1200n, attempts: 1n }))).toBe(
      'Completed, 1,200 steps, 1 attempt, unknown',
    )
  })
})

describe('the difference of two documents', () => {
  const kinds = (...lines: string[]) => diffLines(lines.join('\n')).map(({ kind }) => kind)
  const head = ['--- 1.0.0', '+++ 1.1.0']

  it('has added and removed lines, and where they are', () => {
    expect(kinds(...head, '@@ -1,2 +1,2 @@', ' do:', '-  - a: 1', '+  - b: 1', '')).toEqual([
      'same',
      'same',
      'hunk',
      'same',
      'removed',
      'added',
      'same',
    ])
  })

  it('has lines of the documents that begin as the names do', () => {
    expect(kinds(...head, '@@ -1,2 +1,2 @@', '----', '--- a', '++++', '+++ b')).toEqual([
      'same',
      'same',
      'hunk',
      'removed',
      'removed',
      'added',
      'added',
    ])
  })

  it('keeps its text', () => {
    expect(diffLines('--- a\n@@ @@\n+ b').map(({ text }) => text)).toEqual(['--- a', '@@ @@', '+ b'])
  })
})
