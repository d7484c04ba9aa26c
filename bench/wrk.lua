-- wrk.lua: what the laboratory gives to wrk.  The first argument is how many requests
-- a connection sends at once; wrk counts each of them.  The second one is the name of a
-- file: its lines are asked for one after the other, and again from the first; those
-- that end in #FIRST-LAST are ranges.  Without it, the address of the command line.  At
-- the end one line of JSON, because wrk's own table rounds.  Its percentiles are not used:
-- see bench/README.md.

local function get(line)
	local path, range = line:match("^(.*)#(%d+%-%d+)$")
	if range then
		return wrk.format("GET", path, {Range = "bytes=" .. range})
	end
	return wrk.format("GET", line)
end

function init(args)
	local list, turn, together = {}, 0, tonumber(args[1])
	if args[2] then
		for line in io.lines(args[2]) do
			list[#list + 1] = get(line):rep(together)
		end
	elseif together > 1 then
		list[1] = wrk.format():rep(together)
	else
		return
	end
	function request()
		turn = turn % #list + 1
		return list[turn]
	end
end

function done(summary)
	local e = summary.errors
	print(string.format('{"requests": %d, "seconds": %.6f, "bytes": %d, ' ..
	    '"refused": %d, "errors": %d}', summary.requests,
	    summary.duration / 1e6, summary.bytes, e.status,
	    e.connect + e.read + e.write + e.timeout))
end
