-- What all scripts begin with. KEYS[1] is the entry, a hash. Times are microseconds since 1970 by the server's clock. Numbers are
-- passed on as text without an exponent: they have more digits than Lua prints by itself.
local key = KEYS[1]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local names = {'holder', 'token', 'revision', 'acquired', 'renewed', 'expires', 'retention', 'resigned', 'value'}
local texts = {holder = true, token = true, value = true}

local function text(number) return string.format('%.0f', number) end

-- entry returns the fields by name; nil where there is nothing; nil and the reason where there is no entry but something else.
local function entry()
  local kind = redis.call('TYPE', key).ok
  if kind == 'none' then return nil end
  if kind ~= 'hash' then return nil, 'it is a ' .. kind .. ', not a hash' end
  local found = redis.call('HMGET', key, unpack(names))
  local e = {}
  for i, name in ipairs(names) do
    local value = found[i]
    if not value then return nil, 'it has no field ' .. name end
    if texts[name] then
      e[name] = value
    else
      -- Beyond 2^52, adding one may change nothing.
      e[name] = string.match(value, '^%d+$') and tonumber(value)
      if not e[name] or e[name] > 4503599627370496 then return nil, 'its field ' .. name .. ' is no number that was written here' end
    end
  end
  if e.holder == '' or e.token == '' then return nil, 'its holder or its token is empty' end
  return e
end

local function held(e) return e.resigned == 0 and now < e.expires end

-- put writes the fields given, with a revision of their own. The clock makes it grow over a deletion as well.
local function put(e, changed)
  changed.revision = math.max(e.revision + 1, now)
  for name, value in pairs(changed) do
    e[name] = value
    redis.call('HSET', key, name, texts[name] and value or text(value))
  end
  redis.call('PEXPIRE', key, text(e.retention))
end

-- add appends the fields of an entry to a reply.
local function add(reply, e)
  for _, name in ipairs(names) do
    reply[#reply + 1] = texts[name] and e[name] or text(e[name])
  end
  return reply
end

-- tell is a hint to whoever watches: a user that may not publish still gets what was asked for.
local function tell(channel, what) redis.pcall('PUBLISH', channel, what) end
