// Written by `ricordo install opencode`. It gives opencode a memory across sessions, by calling `ricordo hook`.
// `ricordo uninstall opencode` removes it. Changes in it are lost with the next installation.
import { spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { homedir } from "node:os"
import { isAbsolute, join } from "node:path"

const PROGRAM = "@PROGRAM@"
const MILLISECONDS = 12_000

// The database of the sessions. Without one nothing is learned, and the rest goes on.
const findDatabase = () => {
  const data = join(process.env.XDG_DATA_HOME || join(homedir(), ".local", "share"), "opencode")
  const named = process.env.OPENCODE_DB
  return named ? (isAbsolute(named) ? named : join(data, named)) : join(data, "opencode.db")
}

// Runs a hook and gives what it printed; whatever goes wrong, it gives nothing, and opencode goes on.
const runHook = (event, payload) =>
  new Promise((resolve) => {
    try {
      const child = spawn(PROGRAM, ["hook", "opencode", event], {
        stdio: ["pipe", "pipe", "ignore"],
        timeout: MILLISECONDS,
      })
      let printed = ""
      child.stdout.on("data", (data) => (printed += data))
      child.stdin.on("error", () => {})
      child.on("error", () => resolve(""))
      child.on("close", (code) => resolve(code === 0 ? printed : ""))
      child.stdin.end(JSON.stringify(payload))
    } catch {
      resolve("")
    }
  })

const readAnswer = (printed) => {
  try {
    return printed ? JSON.parse(printed) : {}
  } catch {
    return {}
  }
}

export const Ricordo = async ({ client, directory }) => {
  const running = new Set()
  const subAgents = new Map()

  const call = (event, sessionID, more = {}) => {
    const database = findDatabase()
    const transcript = existsSync(database) ? { transcript_path: `${database}#${sessionID}` } : {}
    const done = runHook(event, { session_id: sessionID, cwd: directory, ...transcript, ...more })
    running.add(done)
    done.finally(() => running.delete(done))
    return done
  }

  // A model wrote the prompt of a sub-agent, not the person.
  const isSubAgent = async (sessionID) => {
    if (!subAgents.has(sessionID)) {
      const session = await client.session.get({ path: { id: sessionID } }).catch(() => ({}))
      subAgents.set(sessionID, Boolean(session?.data?.parentID))
    }
    return subAgents.get(sessionID)
  }

  return {
    "chat.message": async ({ sessionID }, { parts }) => {
      if (await isSubAgent(sessionID)) return
      const said = parts.filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
      const last = parts[parts.length - 1]
      if (!last?.id) return
      const prompt = said.map((part) => part.text).join("\n")
      const answer = readAnswer(await call("chat.message", sessionID, { prompt }))
      if (answer.systemMessage) {
        client.tui?.showToast({ body: { message: answer.systemMessage, variant: "info" } })?.catch(() => {})
      }
      const text = answer.hookSpecificOutput?.additionalContext
      if (text) {
        // parts are kept in the order of their ids
        const id = `${last.id}m`
        parts.push({ id, messageID: last.messageID, sessionID, type: "text", synthetic: true, text })
      }
    },
    "experimental.session.compacting": async ({ sessionID }, { context }) => {
      if (await isSubAgent(sessionID)) return
      const instructions = await call("session.compacting", sessionID)
      if (instructions) context.push(instructions)
    },
    event: async ({ event }) => {
      const sessionID = event.properties?.sessionID
      if (event.type !== "session.idle" || !sessionID || (await isSubAgent(sessionID))) return
      await call("session.idle", sessionID)
    },
    dispose: async () => {
      await Promise.allSettled(running)
    },
  }
}
