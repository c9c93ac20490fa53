"""Key shapes of model providers and of the services around them."""

from itertools import chain

from ricordo.guard.rule import Rule, keys

__all__ = ["MODEL_RULES"]

MODEL_RULES: tuple[Rule, ...] = tuple(
    chain(
        keys("anthropic-key", "sk-ant-", r"[A-Za-z0-9_-]{20,}"),
        keys("openrouter-key", "sk-or-", r"[A-Za-z0-9_-]{32,}", bounded=True),
        keys("langfuse-key", "sk-lf-", r"[A-Za-z0-9-]{30,}", bounded=True),
        keys("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-None-", r"[A-Za-z0-9_-]{20,}"),
        keys("openai-key", "sk-", r"[A-Za-z0-9]{20,}", bounded=True),
        keys("elevenlabs-key", "sk_", r"[0-9a-f]{48}(?![A-Za-z0-9])", bounded=True),
        keys("google-key", "AIza", r"[A-Za-z0-9_-]{35,}", bounded=True),
        keys("google-key", "AQ.Ab", r"[A-Za-z0-9_-]{40,}", bounded=True),
        keys("huggingface-token", "hf_ api_org_", r"[A-Za-z0-9]{30,}", bounded=True),
        keys("groq-key", "gsk_", r"[A-Za-z0-9]{40,}", bounded=True),
        keys("xai-key", "xai-", r"[A-Za-z0-9]{60,}", bounded=True),
        keys("replicate-token", "r8_", r"[A-Za-z0-9]{35,}", bounded=True),
        keys("perplexity-key", "pplx-", r"[A-Za-z0-9]{40,}", bounded=True),
        keys("together-key", "tgp_v1_", r"[A-Za-z0-9_-]{40,}"),
        keys("fireworks-key", "fw_", r"[A-Za-z0-9]{22,24}(?![A-Za-z0-9_])", bounded=True),
        keys("cerebras-key", "csk-", r"[a-z0-9]{40,}", bounded=True),
        keys("nvidia-key", "nvapi-", r"[A-Za-z0-9_-]{50,}"),
        keys("voyage-key", "pa-", r"[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])", bounded=True),
        keys("jina-key", "jina_", r"[A-Za-z0-9_-]{50,}", bounded=True),
        keys("tavily-key", "tvly-", r"[A-Za-z0-9-]{28,}", bounded=True),
        keys("firecrawl-key", "fc-", r"[0-9a-f]{32}(?![A-Za-z0-9])", bounded=True),
        keys("pinecone-key", "pcsk_", r"[A-Za-z0-9]{5,8}_[A-Za-z0-9]{50,}"),
        keys("langsmith-key", "lsv2_pt_ lsv2_sk_", r"[0-9a-f]{32}_[0-9a-f]{10}"),
        keys("e2b-key", "e2b_", r"[0-9a-f]{40}(?![A-Za-z0-9])", bounded=True),
    )
)
