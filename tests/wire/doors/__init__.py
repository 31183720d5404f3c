"""Tests of the translations between chats and other APIs."""
